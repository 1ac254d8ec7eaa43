"""Text from outside (model names, notes, file names, sources) made safe to show, before any format sees it.

Each format escapes for itself; this removes what no format should contain (`planner.text.UNSAFE`).
"""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import urlsplit

from planner.text import CONTROLS, HALVES, LINE_ENDS, TURNING

_APART, _WITHIN = re.compile(f"[{CONTROLS}{LINE_ENDS}]"), re.compile(f"[{TURNING}{HALVES}]")
"""What stands between words, and what stands within one."""


def clean(value: object) -> str:
    """One line of harmless text: what is unsafe is a blank between words and gone within one; blanks are folded.

    Unlike on the screen (`mpplan.ui.sink.visible`), a reader has no use for the number of a character; unlike in a file
    (`planner.text.one_line`), nothing compares the text, and the joiners that some scripts need stay.
    """
    text = "" if value is None else str(value)
    if text.isprintable() and "  " not in text and text == text.strip():
        return text  # nearly all text
    return " ".join(_WITHIN.sub("", _APART.sub(" ", text)).split())


def clean_tree(value: Any) -> Any:
    """The same for every string of a JSON value, keys included; numbers, booleans and None are unchanged."""
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, dict):
        return {clean(key): clean_tree(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [clean_tree(inner) for inner in value]
    return value


def web_address(text: str) -> str | None:
    """The text as a link target if all of it is an `http(s)` address without credentials, else None."""
    if any(c.isspace() or c in "\"'<>\\`" for c in text):
        return None
    try:
        parts = urlsplit(text)
    except ValueError:
        return None
    ok = parts.scheme in {"http", "https"} and parts.netloc and "@" not in parts.netloc
    return text if ok else None
