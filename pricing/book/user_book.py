"""Adds rows to the user's own price book: none is ever replaced, and the file is written whole or not at all."""

from __future__ import annotations

import csv
import hashlib
import io
import os
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from planner.errors import UsageError
from pricing.book.rows import COLUMNS, PriceRow, load_user_book, user_book_path


@dataclass(frozen=True, slots=True, kw_only=True)
class Added:
    """The outcome of adding rows."""

    added: tuple[PriceRow, ...]
    """The new rows, with their ids."""
    known: int
    """How many rows the book had already."""
    conflicts: tuple[PriceRow, ...]
    """Rows left out because the book has another price for the same offer on the same days."""


def row_id(row: PriceRow) -> str:
    """An id derived from the content of a row, so that the same row always gets the same id."""
    content = "|".join((*_key(row), str(row.price_per_gpu_h)))
    return "r" + hashlib.sha256(content.encode()).hexdigest()[:12]


def _key(row: PriceRow) -> tuple[str, ...]:
    """What a price is for; two rows with the same key must have the same price."""
    days = (row.date_earliest.isoformat(), row.date_latest.isoformat())
    return (row.provider, row.gpu, row.region.lower(), row.instance, row.commitment, row.currency, row.seller, *days)


def add_rows(rows: Iterable[PriceRow]) -> Added:
    """Add rows to the user's book.

    Raises:
        InputFileError: the book is damaged; it is left as it is.
        UsageError: it cannot be read or written.
    """
    with _locked():
        book = load_user_book()
        known = {_key(row): row for row in book.rows}
        added, conflicts, same = [], [], 0
        for row in rows:
            other = known.get(_key(row))
            if other is None:
                fresh = replace(row, id=row_id(row))
                known[_key(row)] = fresh
                added.append(fresh)
            elif other.price_per_gpu_h == row.price_per_gpu_h:
                same += 1
            else:
                conflicts.append(row)
        if added:
            write_book(user_book_path(), (*book.rows, *added))
    return Added(added=tuple(added), known=same, conflicts=tuple(conflicts))


def book_text(rows: Iterable[PriceRow]) -> str:
    """Rows as CSV with the columns `COLUMNS`."""
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(COLUMNS)
    for row in rows:
        writer.writerow([getattr(row, column) for column in COLUMNS])
    return buffer.getvalue()


def write_book(path: Path, rows: Iterable[PriceRow]) -> None:
    """Replace a price book with these rows, whole or not at all.

    Raises:
        UsageError: the file cannot be written; the old one is unchanged.
    """
    write_whole(path, book_text(rows))


def write_whole(path: Path, text: str) -> None:
    """Write a file of the user's data folder whole or not at all: into a temporary file that then replaces it.

    Raises:
        UsageError: the file cannot be written; the old one is unchanged.
    """
    temporary = None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=".mpplan-")
        with os.fdopen(handle, "w", encoding="utf-8", newline="") as file:
            file.write(text)
        os.replace(temporary, path)
    except OSError as error:
        if temporary is not None:
            Path(temporary).unlink(missing_ok=True)
        raise _unwritable(path, error) from error


def _unwritable(path: Path, error: OSError) -> UsageError:
    return UsageError(f"cannot write `{path}`: {error.strerror}", hint="check the folder or set XDG_DATA_HOME")


@contextmanager
def _locked() -> Iterator[None]:
    """Hold the book's lock, so that no row is lost when two commands add rows at the same time."""
    path = user_book_path().with_suffix(".lock")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        file = path.open("a")
    except OSError as error:
        raise _unwritable(path.parent, error) from error
    with file:
        try:
            import fcntl
        except ImportError:  # Windows: replacing the file is still atomic, the last writer wins
            yield
            return
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
