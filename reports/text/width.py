"""How wide a text is where every letter takes a column, or two, and where its lines may break."""

from __future__ import annotations

from unicodedata import combining, east_asian_width


def columns_of(text: str) -> int:
    """Width of a text in columns: two for a wide character, none for a combining one."""
    return sum(0 if combining(c) else 2 if east_asian_width(c) in "WF" else 1 for c in text)


def wrapped(text: str, width: int) -> list[str]:
    """Lines of at most `width` columns, broken at spaces or between wide characters."""
    lines: list[str] = [""]
    for word in _words(text):
        glued = lines[-1] + word
        if columns_of(glued.rstrip()) <= width or not lines[-1]:
            lines[-1] = glued
        else:
            lines.append(word.lstrip())
    return [line.rstrip() for line in lines]


_NOT_FIRST = frozenset("，。；：、？！％%”）》」』,.;:?!)]")
"""What never begins a line in a text of wide characters."""
_NOT_LAST = frozenset("（“《「『")
"""What never ends one."""


def _words(text: str) -> list[str]:
    """Pieces between which a line may break."""
    pieces: list[str] = []
    for c in text:
        if not pieces or pieces[-1].endswith(" ") or _breaks(pieces[-1][-1], c):
            pieces.append(c)
        else:
            pieces[-1] += c
    return pieces


def _breaks(before: str, c: str) -> bool:
    """Whether a line may break between two characters, neither of which is before a space."""
    if c == " " or c in _NOT_FIRST or before in _NOT_LAST:
        return False
    return east_asian_width(c) in "WF" or east_asian_width(before) in "WF"
