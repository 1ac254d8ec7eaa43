"""Markdown of the pages that benchmarks write: percentages, tables, paragraphs."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Sequence

from reports.text.numbers import MINUS, with_minus

_FIGURE = re.compile(rf"[{MINUS}+–0-9][0-9.,]*(e[{MINUS}+-]?\d+)?(%| x)?( / [0-9.]+%)?")
NONE = "–"
"""What stands for a figure that is not known."""


def percent(ratio: float | None, digits: int = 1) -> str:
    """Return a ratio as a percentage, for example `−5.7%`; a dash where there is none."""
    return NONE if ratio is None else _unsigned_zero(f"{100 * ratio:.{digits}f}%")


def signed(ratio: float | None, digits: int = 0) -> str:
    """Return a change as a percentage with its sign, for example `+3%` or `−10%`; a dash where there is none."""
    return NONE if ratio is None else _unsigned_zero(f"{100 * ratio:+.{digits}f}%")


def _unsigned_zero(text: str) -> str:
    """Write the sign as a minus sign; a figure that rounds to zero has none."""
    return with_minus(text) if re.search("[1-9]", text) else text.lstrip("+-")


def table(headers: Sequence[str], rows: Iterable[Sequence[str]], *, text_columns: int | None = None) -> str:
    """Return a Markdown table with columns of figures aligned right, and a line end.

    Args:
        headers: one text per column.
        rows: rows of one text per column.
        text_columns: number of leading columns that are text, the others being figures; None: a column is one of
            figures if every cell is a bare number or percentage.
    """
    cells = [list(row) for row in rows]
    if text_columns is None:
        figures = [all(_FIGURE.fullmatch(row[i]) for row in cells) for i in range(len(headers))]
    else:
        figures = [i >= text_columns for i in range(len(headers))]
    marks = "|".join("---:" if right else "---" for right in figures)
    return "\n".join([f"| {' | '.join(headers)} |", f"|{marks}|", *(f"| {' | '.join(row)} |" for row in cells)]) + "\n"


def paragraph(text: str) -> str:
    """Return text wrapped at 120 characters, with a line end."""
    return textwrap.fill(text, 120) + "\n"
