"""Text from outside: the characters that are never safe, and the conversion to one line of a file.

Three functions clean text. They treat the same characters (`CONTROLS`, `LINE_ENDS`, `TURNING`, `HALVES`) differently:

- `one_line` here, for text that is stored in a file and compared: characters that do not print become a blank.
- `reports.text.clean.clean`, for reports: marks are removed, so that words stay whole; the others become a blank.
- `mpplan.ui.sink.visible`, for the screen: nothing is lost, since each character is shown by its number.
"""

from __future__ import annotations

CONTROLS = r"\x00-\x1f\x7f-\x9f"
"""C0, DEL and C1 (ECMA-48) including tab and line ends, which a terminal executes. This and the next three constants
are ranges for a character class of `re`."""
LINE_ENDS = r"\u2028\u2029"
"""Characters that end a line for some readers, also in source code."""
TURNING = r"\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"
"""Characters that change the direction of the text after them (Unicode UAX 9, section 2)."""
HALVES = r"\ud800-\udfff"
"""Halves of surrogate pairs (from a file name that is not UTF-8, or a truncated JSON escape), which cannot be
encoded."""
UNSAFE = CONTROLS + LINE_ENDS + TURNING + HALVES
"""All unsafe characters. None is printable (`str.isprintable`), so printable text needs no further check."""

MOST_SHOWN = 80
"""Most characters of a text that an error repeats."""


def shortened(text: str, most: int = MOST_SHOWN) -> str:
    """A text on one line, truncated with `…` if it is long; for errors, which repeat the text that was found."""
    line = one_line(text[: most + 1])
    return line if len(line) <= most else f"{line[: most - 1]}…"


def one_line(text: str) -> str:
    """A text on one line, made of printable characters; runs of other characters and blanks become a single space.

    This is stricter than `UNSAFE`: text stored in a file is compared later, and two names that look the same must be
    the same. Invisible characters (a zero-width space, a soft hyphen) are therefore replaced, too.
    """
    if text.isprintable():
        return text.strip()
    return " ".join("".join(letter if letter.isprintable() else " " for letter in text).split())
