"""Text from outside (model names, notes, file names, sources) made safe to show, before any format sees it.

Each format escapes for itself; this removes what no format should contain: terminal escape sequences and other
control characters, marks that reorder text for the reader, and line breaks inside a cell.
"""

from __future__ import annotations

import unicodedata
from typing import Any
from urllib.parse import urlsplit

_BIDI = frozenset("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
"""Characters that change the direction of the text after them (Unicode UAX 9, section 2)."""


def clean(value: object) -> str:
    """One line of harmless text: no control, formatting or unpaired surrogate characters, spaces folded."""
    text = "" if value is None else str(value)
    if text.isprintable() and "  " not in text and text == text.strip():
        return text  # nearly all text; the rest is checked character by character
    kept = (" " if unicodedata.category(c) in {"Cc", "Zl", "Zp"} else c for c in text if c not in _BIDI)
    return " ".join("".join(c for c in kept if unicodedata.category(c) != "Cs").split())


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
