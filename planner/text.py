"""Text that somebody else wrote: which of its characters are safe nowhere, and how it becomes one line of a file.

Three places clean text, each by the same rule (`CONTROLS`, `LINE_ENDS`, `TURNING`, `HALVES`) and each in its own way:

- `one_line` here, for what is kept in a file and compared: what does not print becomes a blank.
- `reports.text.clean.clean`, for reports: marks vanish, so that words stay whole; the rest becomes a blank.
- `mpplan.ui.sink.visible`, for the screen: nothing is lost, since a character is shown by its number.
"""

from __future__ import annotations

CONTROLS = r"\x00-\x1f\x7f-\x9f"
"""C0, DEL and C1 (ECMA-48), tab and line ends among them: a terminal obeys them. As all four, in a class of `re`."""
LINE_ENDS = r"\u2028\u2029"
"""End a line for some readers, in a program's text too."""
TURNING = r"\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"
"""Change the direction of the text after them (Unicode UAX 9, section 2)."""
HALVES = r"\ud800-\udfff"
"""Half of a pair (a byte of a file name that is no UTF-8, a cut JSON escape): no encoding has it."""
UNSAFE = CONTROLS + LINE_ENDS + TURNING + HALVES
"""All of them. None is printable (`str.isprintable`), so a text that is needs no further look."""

MOST_SHOWN = 80
"""Characters of a text that an error repeats."""


def shortened(text: str, most: int = MOST_SHOWN) -> str:
    """A text on one line, its end replaced by `…` where it is long; for errors, which repeat what was found."""
    line = one_line(text[: most + 1])
    return line if len(line) <= most else f"{line[: most - 1]}…"


def one_line(text: str) -> str:
    """A text on one line, of characters that print: every other one, and every blank, becomes a single space.

    Stricter than `UNSAFE`: what is kept in a file is compared later, and two names that look the same have to be the
    same. So characters without a shape (a zero-width space, a soft hyphen) go, too.
    """
    if text.isprintable():
        return text.strip()
    return " ".join("".join(letter if letter.isprintable() else " " for letter in text).split())
