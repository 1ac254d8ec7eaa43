"""Width of text in columns, where a character takes one or two, and the positions where lines may break."""

from __future__ import annotations

from unicodedata import combining, east_asian_width


def columns_of(text: str) -> int:
    """Return the width of a text in columns: two for a wide character, none for a combining one."""
    return sum(0 if combining(c) else 2 if east_asian_width(c) in "WF" else 1 for c in text)


def wrapped(text: str, width: int) -> list[str]:
    """Return lines of at most `width` columns, broken at spaces or between wide characters."""
    lines: list[str] = [""]
    for word in _words(text):
        glued = lines[-1] + word
        if columns_of(glued.rstrip()) <= width or not lines[-1]:
            lines[-1] = glued
        else:
            lines.append(word.lstrip())
    return [line.rstrip() for line in lines]


_NOT_FIRST = frozenset("，。；：、？！％%”）》」』,.;:?!)]")
"""Characters that never begin a line in text of wide characters."""
_NOT_LAST = frozenset("（“《「『")
"""Characters that never end such a line."""


def _words(text: str) -> list[str]:
    """Return pieces between which a line may break."""
    pieces: list[str] = []
    for c in text:
        if not pieces or pieces[-1].endswith(" ") or _breaks(pieces[-1][-1], c):
            pieces.append(c)
        else:
            pieces[-1] += c
    return pieces


def _breaks(before: str, c: str) -> bool:
    """Return whether a line may break between two characters, neither of which precedes a space."""
    if c == " " or c in _NOT_FIRST or before in _NOT_LAST:
        return False
    return east_asian_width(c) in "WF" or east_asian_width(before) in "WF"
