"""Make text from outside (model names, notes, file names, sources) safe to show, before any format receives it.

Each format does its own escaping; this removes characters that no format should contain (`planner.text.UNSAFE`).
"""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import urlsplit

from planner.text import CONTROLS, HALVES, LINE_ENDS, TURNING

_APART, _WITHIN = f"[{CONTROLS}{LINE_ENDS}]", f"[{TURNING}{HALVES}]"
"""Unsafe characters that separate words, and unsafe characters inside words; hardly any text has one."""


def clean(value: object) -> str:
    """Return one line of harmless text: unsafe characters become a blank between words or vanish inside a word.

    Repeated blanks are merged. Unlike on the screen (`mpplan.ui.sink.visible`), characters are not shown as escapes,
    which readers do not need. Unlike in a file (`planner.text.one_line`), joiners that some scripts need are kept,
    because nothing compares the text.
    """
    text = "" if value is None else str(value)
    if text.isprintable() and "  " not in text and text == text.strip():
        return text  # nearly all text
    return " ".join(re.sub(_WITHIN, "", re.sub(_APART, " ", text)).split())


def clean_tree(value: Any) -> Any:
    """Clean every string of a JSON value, including keys; numbers, booleans and None are unchanged."""
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, dict):  # most values need no further call
        return {
            key if key.isascii() and key.isidentifier() else clean(key): inner
            if type(inner) in UNCHANGED
            else clean_tree(inner)
            for key, inner in value.items()
        }
    if isinstance(value, list | tuple):
        return [clean_tree(inner) for inner in value]
    return value


UNCHANGED = frozenset({float, int, bool, type(None)})
"""Types of JSON values that hold no text."""


def web_address(text: str) -> str | None:
    """Return the text as a link target if all of it is an `http(s)` address without credentials, else None."""
    if any(c.isspace() or c in "\"'<>\\`" for c in text):
        return None
    try:
        parts = urlsplit(text)
    except ValueError:
        return None
    ok = parts.scheme in {"http", "https"} and parts.netloc and "@" not in parts.netloc
    return text if ok else None
