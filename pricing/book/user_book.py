"""Add rows to the user's own price book: no row is ever replaced, and the file is written completely or not at all."""

from __future__ import annotations

import csv
import hashlib
import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from io import StringIO
from pathlib import Path

from planner.errors import InputFileError, UsageError
from planner.files import read_bytes, replace_file
from planner.lazy import dataclass
from planner.rows import CellError, Row
from planner.units import today
from pricing.book.current import is_implausible
from pricing.book.reading import load_user_book, parse_book, shipped_by_id, user_book_path
from pricing.book.rows import COLUMNS, HIGHEST_PLAUSIBLE_PER_GPU_H, MEND, PriceBook, PriceRow, price_row
from pricing.files.exchange_rates import ExchangeRate, load_rates, usd_rate


@dataclass(frozen=True, slots=True, kw_only=True)
class Added:
    """The outcome of adding rows."""

    added: tuple[PriceRow, ...]
    """The new rows, with their ids."""
    known: int
    """Number of rows that the book already had."""
    conflicts: tuple[PriceRow, ...]
    """Rows left out because the book has another price for the same offer on the same days."""
    refused: dict[str, int]
    """Number of rows that no book can hold, by what was expected of them."""


def row_id(row: PriceRow) -> str:
    """Return an id derived from the content of a row, so that the same row always gets the same id."""
    parts = (*row.offer, str(row.price_per_gpu_h))
    content = "|".join(part.replace("\\", "\\\\").replace("|", "\\|") for part in parts)
    return "r" + hashlib.sha256(content.encode()).hexdigest()[:12]


def add_rows(rows: Iterable[PriceRow], *, skip_invalid: bool = True) -> Added:
    """Add rows to the user's book: its lines stay unchanged, good or bad, and the new rows follow.

    The whole text is parsed again before it replaces the book.

    Args:
        rows: the rows; their ids are assigned here.
        skip_invalid: leave out rows that no book can hold, and count them; otherwise nothing is added.

    Raises:
        InputFileError: the book has no header; or a row is invalid and `skip_invalid` is false.
        UsageError: it cannot be read or written. Whatever is raised, the book is unchanged.
    """
    valid, refused = _as_read(rows)
    if refused and not skip_invalid:
        reason, count = next(iter(refused.items()))
        raise InputFileError(
            f"{count} of the new rows cannot be kept: {reason}", hint="correct them, or leave them out"
        )
    with book_lock():
        book = load_user_book()
        known = {row.offer: row for row in book.rows}
        added, conflicts, same = [], [], 0
        for row in valid:
            other = known.get(row.offer)
            if other is None:
                fresh = replace(row, id=row_id(row))
                known[row.offer] = fresh
                added.append(fresh)
            elif other.price_per_gpu_h == row.price_per_gpu_h:
                same += 1
            else:
                conflicts.append(row)
        if added:
            _append(book, added)
    return Added(added=tuple(added), known=same, conflicts=tuple(conflicts), refused=refused)


def _as_read(rows: Iterable[PriceRow]) -> tuple[list[PriceRow], dict[str, int]]:
    """Return the rows as written and read back, and the number of rows that cannot be, by what was expected.

    A price in another currency is checked in USD if its exchange rate is known today.
    """
    valid: list[PriceRow] = []
    refused: dict[str, int] = {}
    day, known = today(), load_rates()
    rate_of: dict[str, ExchangeRate | None] = {}
    for row in rows:
        cells = {column: str(getattr(row, column)) for column in COLUMNS}
        try:
            read = price_row(Row(file="new rows", line=None, cells=cells))
        except CellError as error:
            reason = f"{error.column}: expected {error.expected}"
            refused[reason] = refused.get(reason, 0) + 1
            continue
        if read.currency not in rate_of:
            rate_of[read.currency] = usd_rate(read.currency, day, known)
        rate = rate_of[read.currency]
        if rate is None or not is_implausible(read, rate):
            valid.append(read)
            continue
        reason = (
            f"price_per_gpu_h: expected at most {HIGHEST_PLAUSIBLE_PER_GPU_H} USD per GPU-hour, "
            f"at {rate.usd_per_unit:f} USD per {rate.currency} of {rate.date}"
        )
        refused[reason] = refused.get(reason, 0) + 1
    return valid, refused


def _append(book: PriceBook, added: Sequence[PriceRow]) -> None:
    """Write the book with further lines, once it is known to parse correctly.

    Raises:
        InputFileError: it would not, because an earlier row is damaged in a way that extends to the end.
        UsageError: it cannot be read or written.
    """
    path = user_book_path()
    old = read_book_text(path) if path.exists() else ""
    header = next(csv.reader(StringIO(old, newline="")), None) or COLUMNS
    new = book_text(added, header)
    if old:
        new = ("" if old.endswith("\n") else "\n") + new.partition("\n")[2]
    text = old + new
    read = parse_book(StringIO(text, newline=""), str(path), taken=shipped_by_id())
    if read.rows != (*book.rows, *added) or read.set_aside.count != book.set_aside.count:
        raise InputFileError(f"{path}: with the new rows it could not be read back; it is unchanged", hint=MEND)
    write_whole(path, text)


def read_book_text(path: Path) -> str:
    """Return the unchanged text of a price book, for `parse_book`.

    Raises:
        UsageError: it is missing or cannot be read.
        InputFileError: it is not a regular file, or too large.
    """
    return read_bytes(path).decode("utf-8-sig", errors="surrogateescape")


def book_text(rows: Iterable[PriceRow], header: Sequence[str] = COLUMNS) -> str:
    """Return rows as CSV with these columns; columns that no price row has stay empty."""
    buffer = StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(header)
    for row in rows:
        writer.writerow([getattr(row, column) if column in COLUMNS else "" for column in header])
    return buffer.getvalue()


def write_whole(path: Path, text: str) -> None:
    """Write a file of the user's data folder completely or not at all (`planner.files.replace_file`).

    Lone surrogates become the bytes that they represent (`surrogateescape`).

    Raises:
        UsageError: the file cannot be written; the old one is unchanged.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        replace_file(path, text.encode("utf-8", errors="surrogateescape"))
    except OSError as error:
        raise _unwritable(path, error) from error


def _unwritable(path: Path, error: OSError) -> UsageError:
    return UsageError(f"cannot write `{path}`: {error.strerror}", hint="check the folder or set XDG_DATA_HOME")


@contextmanager
def book_lock() -> Iterator[None]:
    """Hold the book's lock, so that no row is lost when two commands add rows at the same time.

    Raises:
        UsageError: the folder cannot be written, or its file system has no locks (a network drive, for example).
    """
    path = Path(os.path.realpath(user_book_path())).with_suffix(".lock")  # the same for all who share a book by links
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
        try:
            fcntl.flock(file, fcntl.LOCK_EX)
        except OSError as error:
            what = f"cannot lock `{path}`: {error.strerror}"
            raise UsageError(what, hint="set XDG_DATA_HOME to a folder on a disk that has file locks") from error
        yield
