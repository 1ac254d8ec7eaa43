"""Files of runs, as `mpplan validate` and `mpplan calibrate` read them: text by column, with strange columns named."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from io import BytesIO
from typing import Any

from mpplan.ui.console import warn
from planner.errors import InputFileError
from planner.files import read_bytes
from planner.records.home import user_path

CHUNK_ROWS = 2000
"""Rows that are read at a time: a table of text takes many times what its cells that hold something take."""
SHOWN_COLUMNS = 5
"""Unknown columns that one warning names."""
BLANK_HEADER = "Unnamed: "
"""How pandas begins the name of a column whose header is blank."""


def read_runs(name: str | None, *, own: bool = False, quiet: bool = False) -> list[dict[str, str]]:
    """Rows of a CSV file of runs as text by column; columns that no file of runs has are warned about.

    Args:
        name: the file; `-` is stdin, None the runs that mpplan ships.
        own: it is to hold the user's own runs, which an error's hint then says.
        quiet: without warnings.

    Raises:
        UsageError: the file cannot be read.
        InputFileError: it is empty, no CSV, or lacks a column that every row needs.
    """
    import pandas as pd

    from planner.rows import CATALOG
    from planner.validation.runs import REQUIRED

    path = CATALOG / "published_runs.csv" if name is None else user_path(name)
    shown = "stdin" if name == "-" else path.name
    try:
        content = sys.stdin.buffer.read() if name == "-" else read_bytes(path)
        chunks = pd.read_csv(
            BytesIO(_without_comments(content)),
            dtype=str,
            keep_default_na=False,
            encoding="utf-8-sig",
            chunksize=CHUNK_ROWS,
        )
        rows: list[dict[str, str]] = []
        for chunk in chunks:
            chunk.columns = [str(column).strip() for column in chunk.columns]
            missing = [column for column in REQUIRED if column not in chunk.columns]
            if missing:
                raise InputFileError(
                    f"{shown}:1: {missing[0]}: expected a column of this name", hint=_columns_hint(own, missing)
                )
            if not rows:
                _warn_of_unknown(chunk.columns, shown, quiet)
            rows += _cells(chunk)
    except pd.errors.EmptyDataError as error:
        raise InputFileError(f"{shown}:1: expected a header line, found nothing", hint=_columns_hint(own)) from error
    except UnicodeDecodeError as error:
        raise InputFileError(f"{shown}:1: expected text in UTF-8", hint="save the file as UTF-8") from error
    except pd.errors.ParserError as error:
        reason = str(error).removeprefix("Error tokenizing data. C error: ").strip()
        raise InputFileError(f"{shown}: not a CSV file: {reason}", hint="quote cells that contain a comma") from error
    if not rows:
        each = "run of your own" if own else "run"
        raise InputFileError(f"{shown}:2: expected a row, found none", hint=f"add a line per {each}")
    return rows


def _warn_of_unknown(columns: Iterable[str], shown: str, quiet: bool) -> None:
    """Name the columns that no run has, each with the column or metric that may be meant."""
    from planner.rows import near_names
    from planner.validation.runs import COLUMNS, METRICS

    unknown = [column for column in columns if column not in COLUMNS and not column.startswith(BLANK_HEADER)]
    if not unknown:
        return
    told = []
    for column in unknown[:SHOWN_COLUMNS]:
        near = next(iter(near_names(column, (*COLUMNS, *METRICS), limit=1)), None)
        how = "" if near in COLUMNS else ", whose name belongs in `metric` and its figure in `value`"
        told.append(f"`{column}`" + (f" (did you mean `{near}`{how}?)" if near else ""))
    more = f" and {len(unknown) - SHOWN_COLUMNS} more" if len(unknown) > SHOWN_COLUMNS else ""
    verb = "is not a column of a file of runs" if len(unknown) == 1 else "are not columns of a file of runs"
    warn(f"{shown}:1: {', '.join(told)}{more} {verb}: not read", quiet=quiet)


def _cells(chunk: Any) -> list[dict[str, str]]:
    """The cells of each row that hold something; a text that stands in many rows is kept once."""
    columns = [sys.intern(str(column)) for column in chunk.columns]
    return [
        {column: sys.intern(cell) for column, cell in zip(columns, cells, strict=True) if cell}
        for cells in chunk.itertuples(index=False, name=None)
    ]


def _without_comments(content: bytes) -> bytes:
    """A file of runs without the comments at its beginning (`mpplan calibrate --template`)."""
    begin = len(b"\xef\xbb\xbf") if content.startswith(b"\xef\xbb\xbf") else 0
    while content.startswith(b"#", begin):
        end = content.find(b"\n", begin)
        begin = len(content) if end < 0 else end + 1
    return content[begin:]


def _columns_hint(own: bool, missing: Iterable[str] = ()) -> str:
    from planner.validation.runs import REQUIRED

    columns = list(missing) or REQUIRED
    page = "docs/calibrating.md" if own else "docs/accuracy.md"
    if len(columns) == 1:
        return f"add the column {columns[0]}; {page} describes it"
    return f"add the columns {', '.join(columns)}; {page} describes them"
