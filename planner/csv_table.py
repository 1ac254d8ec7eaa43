"""CSV tables: the writer that every export and report uses, and detection of the separator in users' files."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Sequence
from typing import Any

FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")
"""Beginnings of a text that a spreadsheet interprets as a formula (OWASP, CSV injection)."""

SEPARATORS = {",": "comma", ";": "semicolon", "\t": "tab"}
"""Separators that spreadsheets write between cells, depending on country and format, with their names."""


def separator_of(header: str) -> str:
    """The most frequent separator in a header line; a comma if it has none."""
    return max(SEPARATORS, key=header.count)


def csv_table(
    heads: Sequence[str],
    rows: Iterable[Sequence[Any]],
    *,
    line_end: str = "\r\n",
    number: Callable[[Any], object] = lambda value: value,
) -> str:
    """A table as CSV (RFC 4180); texts that a spreadsheet would evaluate are prefixed with a quote mark.

    Args:
        heads: headings of the columns.
        rows: cells of each row; None becomes an empty cell.
        line_end: CR LF, or LF for tools that count lines.
        number: converts a cell that is not a text.
    """
    out = io.StringIO()
    writer = csv.writer(out, lineterminator=line_end)
    writer.writerow([guarded(head) for head in heads])
    writer.writerows([guarded(cell) if isinstance(cell, str) else number(cell) for cell in row] for row in rows)
    return out.getvalue()


def guarded(text: str) -> str:
    """Escape a text so that no spreadsheet interprets it as a formula."""
    return f"'{text}" if text.startswith(FORMULA) else text
