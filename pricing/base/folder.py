"""Where price data lies: the rows shipped with the package, and the user's own files, of which any may be missing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from planner.files import read_text
from planner.rows import Row, parse_rows

DATA = Path(__file__).parent.parent / "data"
"""Folder of the data files that ship with pricing."""


def user_rows(path: Path, columns: Iterable[str]) -> Iterator[Row]:
    """The rows of a CSV file of the user; none where there is no such file. Errors name the whole path.

    Args:
        path: the file.
        columns: columns that must be there.

    Raises:
        UsageError: the file is there and cannot be read.
        InputFileError: it is no file or not UTF-8, lacks a column, or a line has too few or too many cells.
    """
    if not path.exists():
        return iter(())
    return parse_rows(read_text(path, str(path)), str(path), columns)
