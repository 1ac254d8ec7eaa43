"""How wide a text is where every letter takes a column, or two."""

from __future__ import annotations

from unicodedata import east_asian_width


def columns_of(text: str) -> int:
    """Width of a text in columns; wide characters take two."""
    return sum(2 if east_asian_width(c) in "WF" else 1 for c in text)
