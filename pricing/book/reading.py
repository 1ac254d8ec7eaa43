"""Read price books: the shipped one, the user's, or another; a bad row is set aside and the others count."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from functools import cache
from io import TextIOWrapper
from itertools import chain
from pathlib import Path

from planner.errors import InputFileError
from planner.files import open_file
from planner.records.home import data_dir, has_data_dir
from planner.rows import Row, keyed, read_rows
from pricing.base.folder import DATA
from pricing.book.rows import COLUMNS, MEND, MOST_NAMED, BadRow, PriceBook, PriceRow, SetAside, price_row
from pricing.files.csv_lines import csv_lines


def book_lines(
    lines: Iterable[str], name: str, gpu: str | None = None, taken: Mapping[str, PriceRow] | None = None
) -> Iterator[tuple[str, PriceRow | BadRow]]:
    """Yield every line of a price book unchanged, with the price in it or the error in it.

    Args:
        lines: the file's lines; a byte that is not UTF-8 appears as a lone surrogate (`surrogateescape`).
        name: the file's name, for errors.
        gpu: yield only good rows of this GPU.
        taken: rows of another book, whose ids no different row may have.

    Raises:
        InputFileError: a column is missing.
    """
    ids: set[str] = set()
    others = taken or {}
    for line in csv_lines(lines, name, COLUMNS, only=None if gpu is None else ("gpu", gpu)):
        try:
            if isinstance(line.content, InputFileError):
                raise line.content
            row = price_row(line.content)
            if row.id in ids or others.get(row.id, row) != row:
                raise line.content.fail("id", "an id that no other line has")
            ids.add(row.id)
            yield line.text, row
        except InputFileError as error:
            yield line.text, BadRow(line=line.number, text=line.text, error=error)


def parse_book(
    lines: Iterable[str], name: str, gpu: str | None = None, taken: Mapping[str, PriceRow] | None = None
) -> PriceBook:
    """Return the price book in these lines; see `book_lines`.

    Raises:
        InputFileError: a column is missing.
    """
    rows: list[PriceRow] = []
    named: list[BadRow] = []
    count = 0
    for _, row in book_lines(lines, name, gpu, taken):
        if isinstance(row, PriceRow):
            rows.append(row)
            continue
        count += 1
        if len(named) < MOST_NAMED:
            named.append(row)
    return PriceBook(rows=tuple(rows), set_aside=SetAside(file=name, rows=tuple(named), count=count))


def open_book(path: Path) -> TextIOWrapper:
    """Open the lines of a price book for `book_lines`; the caller closes them.

    Raises:
        UsageError: the file is missing or may not be read.
        InputFileError: it is not a regular file, or is too large.
    """
    return TextIOWrapper(open_file(path), encoding="utf-8-sig", errors="surrogateescape", newline="")


def read_book(path: Path) -> PriceBook:
    """Read a price book CSV; bad rows are set aside.

    Raises:
        UsageError: the file cannot be read.
        InputFileError: it is not a regular file, is too large, or lacks a column.
    """
    with open_book(path) as lines:
        return parse_book(lines, str(path))


def refuse_bad_rows(book: PriceBook, hint: str | None = None) -> None:
    """Refuse a book with bad rows, where a file is accepted only as a whole.

    Args:
        book: the book.
        hint: another way to deal with them.

    Raises:
        InputFileError: the error in the first bad row; the hint names the lines of all.
    """
    if book.set_aside.rows:
        first = book.set_aside.rows[0].error
        lines = book.set_aside.lines()
        correct = first.hint if book.set_aside.count == 1 else f"correct lines {lines}"
        raise InputFileError(first.message, hint=f"{correct}, or {hint}" if hint else correct)


@cache
def _shipped_lines() -> dict[str, Row]:
    return keyed(read_rows(DATA / "gpu_prices.csv", COLUMNS), lambda row: row)


@cache
def shipped_book(gpu: str | None = None) -> PriceBook:
    """Return the rows shipped with the package, optionally of one GPU."""
    lines = _shipped_lines().values()
    return PriceBook(rows=tuple(price_row(line) for line in lines if gpu is None or line.cell("gpu") == gpu))


@cache
def shipped_by_id() -> dict[str, PriceRow]:
    """Return the shipped rows by id: a different row of the user may not use one of these ids."""
    return {row.id: row for row in shipped_book().rows}


def user_book_path() -> Path:
    """Return the path of the user's own price book, with the rows that were added, imported or fetched."""
    return data_dir() / "prices.csv"


def load_user_book(gpu: str | None = None) -> PriceBook:
    """Return the user's own rows, optionally of one GPU; none where there is no such book, or an empty file.

    Bad rows are set aside.

    Raises:
        InputFileError: the book has no header, or is not a regular file.
        UsageError: it cannot be read.
    """
    if not has_data_dir() or not (path := user_book_path()).exists():
        return PriceBook(rows=())
    try:
        with open_book(path) as lines:
            first = next(lines, "")
            return parse_book(chain((first,), lines), str(path), gpu, shipped_by_id()) if first else PriceBook(rows=())
    except InputFileError as error:
        raise InputFileError(error.message, hint=MEND) from None


def load_book(gpu: str | None = None) -> PriceBook:
    """Return the shipped rows and the user's, optionally of one GPU.

    Raises:
        InputFileError: the user's book has no header, or is not a regular file.
        UsageError: it cannot be read.
    """
    own = load_user_book(gpu)
    return replace(shipped_book(gpu).plus(own.rows), set_aside=own.set_aside)
