"""Tables as CSV: the one writer of every export and report, and what separates the cells of a file people bring."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Sequence
from typing import Any

FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")
"""What a spreadsheet takes for the start of a formula (OWASP, CSV injection)."""

SEPARATORS = {",": "comma", ";": "semicolon", "\t": "tab"}
"""What spreadsheets write between cells, by country and format, and what it is called."""


def separator_of(header: str) -> str:
    """The separator that a header line has most of; a comma where it has none."""
    return max(SEPARATORS, key=header.count)


def csv_table(
    heads: Sequence[str],
    rows: Iterable[Sequence[Any]],
    *,
    line_end: str = "\r\n",
    number: Callable[[Any], object] = lambda value: value,
) -> str:
    """A table as CSV (RFC 4180); a text that a spreadsheet would compute gets a quote mark before it, numbers stay.

    Args:
        heads: of the columns.
        rows: their cells; None is empty.
        line_end: CR LF, or LF for tools that count lines.
        number: how a cell that is no text is written.
    """
    out = io.StringIO()
    writer = csv.writer(out, lineterminator=line_end)
    writer.writerow([guarded(head) for head in heads])
    writer.writerows([guarded(cell) if isinstance(cell, str) else number(cell) for cell in row] for row in rows)
    return out.getvalue()


def guarded(text: str) -> str:
    """A text that no spreadsheet takes for a formula."""
    return f"'{text}" if text.startswith(FORMULA) else text
