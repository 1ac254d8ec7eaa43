"""Text that somebody else wrote, made fit for one line: of a table, a terminal or an error."""

from __future__ import annotations

MOST_SHOWN = 80
"""Characters of a text that an error repeats."""


def shortened(text: str, most: int = MOST_SHOWN) -> str:
    """A text on one line, its end replaced by `…` where it is long; for errors, which repeat what was found."""
    line = one_line(text[: most + 1])
    return line if len(line) <= most else f"{line[: most - 1]}…"


def one_line(text: str) -> str:
    """A text on one line, of characters that print: every other one, and every blank, becomes a single space.

    Line ends, control characters and lone surrogates would break a table, a terminal or the encoding of a file.
    """
    if text.isprintable():
        return text.strip()
    return " ".join("".join(letter if letter.isprintable() else " " for letter in text).split())
