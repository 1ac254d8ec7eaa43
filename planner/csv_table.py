"""CSV tables: the writer of every export and report; separators between cells, and decimal marks, of users' files."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any

FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")
"""Beginnings of a text that a spreadsheet interprets as a formula (OWASP, CSV injection)."""

SEPARATORS = {",": "comma", ";": "semicolon", "\t": "tab"}
"""Separators that spreadsheets write between cells, depending on country and format, with their names."""


def separator_of(header: str) -> str:
    """The most frequent separator in a header line; a comma if it has none."""
    return max(SEPARATORS, key=header.count)


POINT, COMMA = ".", ","
"""Decimal marks."""
EITHER = "either"
"""Mark of a number like `1.234` or `1,234`, in which it may be a decimal mark or separate thousands."""
_NUMBER = re.compile(r"([+-]?)([0-9.,][0-9., \u00a0\u202f'\u2019]*)((?:[eE][+-]?[0-9]+)?[A-Za-z]{0,3})")
_POINTS, _COMMAS = (re.compile(rf"[1-9][0-9]{{0,2}}(?:{mark}[0-9]{{3}})+") for mark in (r"\.", ","))
_SPACES = re.compile(r"(?<=[0-9])[ \u00a0\u202f'\u2019](?=[0-9]{3}(?![0-9]))")


def decimal_mark(text: str) -> str | None:
    """Return the decimal mark that a number shows.

    Returns:
        `POINT` or `COMMA`; `EITHER` if the mark may also separate thousands; None for a number without any mark, and
        for a text that is not a number.
    """
    number = _NUMBER.fullmatch(text.strip())
    if number is None:
        return None
    marks = [mark for mark in number[2] if mark in (POINT, COMMA)]
    if not marks:
        return None
    last = marks[-1]
    whole, _, decimals = number[2].rpartition(last)
    other = COMMA if last == POINT else POINT
    if len(set(marks)) == 2:
        return last if marks.count(last) == 1 else None
    if len(marks) > 1:
        grouped = (_POINTS if last == POINT else _COMMAS).fullmatch(_SPACES.sub("", number[2]))
        return other if grouped else None
    may_group = len(decimals) == 3 and 1 <= len(whole) <= 3 and not whole.startswith("0")
    return EITHER if may_group else last


def with_point(text: str) -> str:
    """Return a number with a decimal comma as one with a decimal point, without separators between thousands.

    Any other text stays as it is.
    """
    number = _NUMBER.fullmatch(text.strip())
    if number is None:
        return text
    whole, comma, decimals = _SPACES.sub("", number[2]).partition(COMMA)
    if POINT in whole:
        if not _POINTS.fullmatch(whole):
            return text
        whole = whole.replace(POINT, "")
    if not (whole + decimals).isdecimal() or (comma and not decimals):
        return text
    return f"{number[1]}{whole or 0}{POINT if comma else ''}{decimals}{number[3]}"


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
        rows: cells of each row; None becomes an empty cell, a boolean `true` or `false`.
        line_end: CR LF, or LF for tools that count lines.
        number: converts a cell that is neither a text nor a boolean.
    """
    out = io.StringIO()
    writer = csv.writer(out, lineterminator=line_end)
    writer.writerow([guarded(head) for head in heads])
    writer.writerows([_cell(cell, number) for cell in row] for row in rows)
    return out.getvalue()


def _cell(cell: Any, number: Callable[[Any], object]) -> object:
    if isinstance(cell, bool):
        return "true" if cell else "false"
    return guarded(cell) if isinstance(cell, str) else number(cell)


def guarded(text: str) -> str:
    """Escape a text so that no spreadsheet interprets it as a formula."""
    return f"'{text}" if text.startswith(FORMULA) else text
