"""Read files of runs for `mpplan validate` and `mpplan calibrate` as text by column; warn about unknown columns."""

from __future__ import annotations

import csv
import io
import sys
from collections import Counter
from collections.abc import Iterable, Iterator

from mpplan.ui.console import warn
from planner.csv_table import SEPARATORS, separator_of
from planner.errors import InputFileError
from planner.files import read_bytes
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
        text = (sys.stdin.buffer.read() if name == "-" else read_bytes(path)).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputFileError(f"{shown}:1: expected text in UTF-8", hint="save the file as UTF-8") from error
    comments, body = _without_comments(text)
    separator = separator_of(body.lstrip().partition("\n")[0])
    lines = csv.reader(io.StringIO(body, newline=""), strict=True, delimiter=separator)
    quote = f"quote cells that contain a {SEPARATORS[separator]}"
    try:
        columns = _columns(lines, shown, own)
        _warn_of_unknown(columns, shown, quiet)
        rows = [_cells(columns, cells, f"{shown}:{comments + lines.line_num}", quote) for cells in lines if cells]
    except csv.Error as error:
        line = comments + lines.line_num
        raise InputFileError(f"{shown}:{line}: not a CSV file: {error}", hint=quote) from error
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
