"""Read files of runs for `mpplan validate` and `mpplan calibrate` as text by column; warn about unknown columns."""

from __future__ import annotations

import csv
import io
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from mpplan.ui.console import warn
from planner.csv_table import SEPARATORS, separator_of
from planner.errors import InputFileError
from planner.files import decoded, read_bytes
from planner.records.home import user_path

SHOWN_COLUMNS = 5
"""Maximum number of unknown columns that one warning names."""


def read_runs(name: str | None, *, own: bool = False, quiet: bool = False) -> list[dict[str, str]]:
    """Read the rows of a CSV file of runs as text by column; warn about unknown columns.

    Cells may be separated by commas, semicolons or tabs, as detected from the header, whose names may be in capitals.

    Args:
        name: the file; `-` is stdin, None the runs that mpplan ships.
        own: whether the file should hold the user's own runs; the hint of an error then says so.
        quiet: suppress warnings.

    Raises:
        UsageError: the file cannot be read.
        InputFileError: the file is empty or not CSV, lacks a required column, or a row has more cells than columns.
    """
    from planner.rows import CATALOG

    path = CATALOG / "published_runs.csv" if name is None else user_path(name)
    shown = "stdin" if name == "-" else path.name
    try:
        text = decoded(sys.stdin.buffer.read() if name == "-" else read_bytes(path))
    except UnicodeDecodeError as error:
        raise InputFileError(f"{shown}:1: expected text in UTF-8", hint="save the file as UTF-8") from error
    if "\0" in text:  # UTF-16 without a byte-order mark, or no text at all
        raise InputFileError(f"{shown}:1: expected text in UTF-8, found a NUL", hint="save the file as UTF-8")
    comments, body = _without_comments(text)
    separator = separator_of(body.lstrip().partition("\n")[0])
    lines = csv.reader(io.StringIO(body, newline=""), strict=True, delimiter=separator)
    quote = f"quote cells that contain a {SEPARATORS[separator]}"
    try:
        columns = _columns(lines, shown, own)
        _warn_of_unknown(columns, shown, quiet)
        placed = [
            (place := f"{shown}:{comments + lines.line_num}", _cells(columns, cells, place, quote))
            for cells in lines
            if cells
        ]
    except csv.Error as error:
        line = comments + lines.line_num
        raise InputFileError(f"{shown}:{line}: not a CSV file: {error}", hint=quote) from error
    if separator != ",":
        _settle_decimals(placed)
    rows = [row for _, row in placed]
    if not rows:
        each = "run of your own" if own else "run"
        raise InputFileError(f"{shown}:{comments + 2}: expected a row, found none", hint=f"add a line per {each}")
    return rows


def _columns(lines: Iterator[list[str]], shown: str, own: bool) -> list[str]:
    """Return the names of the header line; a duplicate is renamed as pandas does it, to `name.1`."""
    from planner.validation.runs import COLUMNS, REQUIRED

    header = [cell.strip() for cell in next((cells for cells in lines if cells), [])]
    header = [cell.lower() if cell.lower() in COLUMNS else cell for cell in header]
    if not header:
        raise InputFileError(f"{shown}:1: expected a header line, found nothing", hint=_columns_hint(own))
    missing = [column for column in REQUIRED if column not in header]
    if missing:
        raise InputFileError(
            f"{shown}:1: {missing[0]}: expected a column of this name", hint=_columns_hint(own, missing)
        )
    seen: Counter[str] = Counter()
    columns = []
    for column in header:
        columns.append(sys.intern(f"{column}.{seen[column]}" if column and seen[column] else column))
        seen[column] += 1
    return columns


def _warn_of_unknown(columns: Iterable[str], shown: str, quiet: bool) -> None:
    """Warn about columns that no run has, each with the column or metric that may be meant."""
    from planner.rows import near_names
    from planner.validation.runs import COLUMNS, METRICS

    unknown = [column for column in columns if column and column not in COLUMNS]
    if not unknown:
        return
    names = []
    for column in unknown[:SHOWN_COLUMNS]:
        near = next(iter(near_names(column, (*COLUMNS, *METRICS), limit=1)), None)
        where = "" if near in COLUMNS else ", whose name belongs in `metric` and its figure in `value`"
        names.append(f"`{column}`" + (f" (did you mean `{near}`{where}?)" if near else ""))
    more = f" and {len(unknown) - SHOWN_COLUMNS} more" if len(unknown) > SHOWN_COLUMNS else ""
    verb = "is not a column of a file of runs" if len(unknown) == 1 else "are not columns of a file of runs"
    warn(f"{shown}:1: {', '.join(names)}{more} {verb}: not read", quiet=quiet)


def _cells(columns: list[str], cells: list[str], place: str, quote: str) -> dict[str, str]:
    """Return the non-empty cells of a row; text that repeats over many rows is stored once.

    A row may be short, or may end in empty cells, as spreadsheets write it.
    """
    if any(cell.strip() for cell in cells[len(columns) :]):
        raise InputFileError(f"{place}: expected {len(columns)} cells, found {len(cells)}", hint=quote)
    return {column: sys.intern(cell) for column, cell in zip(columns, cells, strict=False) if column and cell}


def _settle_decimals(rows: Sequence[tuple[str, dict[str, str]]]) -> None:
    """Write the numbers of a file with decimal commas with points, in place.

    Between semicolons and tabs, spreadsheets write decimal commas in the countries that use them. Which mark a file has
    shows in the numbers that cannot be read in two ways.

    Raises:
        InputFileError: the numbers have both marks, or each can be read in two ways.
    """
    from planner.csv_table import COMMA, EITHER, POINT, decimal_mark, with_point
    from planner.validation.runs import NUMERIC

    shown: dict[str, tuple[str, str, str]] = {}
    for place, row in rows:
        for column in NUMERIC:
            mark = decimal_mark(row[column]) if column in row else None
            if mark is not None:
                shown.setdefault(mark, (place, column, row[column]))
    if COMMA in shown and POINT in shown:
        place, column, text = shown[POINT]
        where, _, other = shown[COMMA]
        raise InputFileError(
            f"{place}: {column}: expected one decimal mark in the whole file, found `{text}` here and `{other}` in "
            f"{where}",
            hint="write all numbers with a decimal point, or all with a decimal comma",
        )
    if EITHER in shown and COMMA not in shown and POINT not in shown:
        place, column, text = shown[EITHER]
        raise InputFileError(
            f"{place}: {column}: `{text}` may have a decimal mark or separated thousands",
            hint="write thousands without a separator, and separate the cells by commas if the decimal mark is a point",
        )
    if COMMA in shown:
        for _, row in rows:
            row |= {column: with_point(row[column]) for column in NUMERIC if column in row}


def _without_comments(text: str) -> tuple[int, str]:
    """Return the number of leading comment lines of a file of runs (`mpplan calibrate --template`), and the rest."""
    lines = begin = 0
    while text.startswith("#", begin):
        end = text.find("\n", begin)
        begin = len(text) if end < 0 else end + 1
        lines += 1
    return lines, text[begin:]


def _columns_hint(own: bool, missing: Iterable[str] = ()) -> str:
    from planner.validation.runs import REQUIRED

    columns = list(missing) or REQUIRED
    page = "docs/calibrating.md" if own else "docs/accuracy.md"
    if len(columns) == 1:
        return f"add the column {columns[0]}; {page} describes it"
    return f"add the columns {', '.join(columns)}; {page} describes them"
