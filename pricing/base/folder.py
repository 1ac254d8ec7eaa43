"""Locations of price data: rows shipped with the package, and the user's own files, any of which may be missing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from planner.files import read_text
from planner.rows import Row, parse_rows

DATA = Path(__file__).parent.parent / "data"
"""Folder of the data files that ship with pricing."""


def user_rows(path: Path, columns: Iterable[str]) -> Iterator[Row]:
    """Return the rows of a user's CSV file; none where the file does not exist. Errors name the whole path.

    Args:
        path: the file.
        columns: required columns.

    Raises:
        UsageError: the file exists but cannot be read.
        InputFileError: it is not a regular file or not UTF-8, lacks a column, or a line has too few or too many cells.
    """
    if not path.exists():
        return iter(())
    return parse_rows(read_text(path, str(path)), str(path), columns)
