"""The price book: dated prices of a GPU-hour, shipped with the package or added by the user."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import date
from decimal import Decimal
from functools import lru_cache
from io import TextIOWrapper
from pathlib import Path

from planner.errors import InputFileError, UsageError
from planner.files import open_file
from planner.records.home import data_dir
from planner.rows import Row, keyed, read_rows
from planner.text import one_line
from pricing.base.folder import DATA
from pricing.base.money import read_currency
from pricing.files.csv_lines import csv_lines

COMMITMENTS = ("on-demand", "spot", "1y", "3y")
SELLERS = ("provider", "broker", "marketplace")
STALE_AFTER_DAYS = 90

COLUMNS = (
    "id",
    "gpu",
    "provider",
    "region",
    "instance",
    "gpus_per_instance",
    "commitment",
    "price_per_gpu_h",
    "currency",
    "seller",
    "date_earliest",
    "date_latest",
    "date_basis",
    "source",
    "notes",
)
"""Columns of a price book CSV."""

HIGHEST_PLAUSIBLE_PER_GPU_H = Decimal(200)
"""In USD; the highest known price is 17.80. A higher one is that of a server, or in cents."""

HIGHEST_PER_GPU_H = 10**9
"""In any currency: what 200 USD are in the one whose unit is worth least, with room to fall."""
MOST_CHARACTERS = 10_000
"""Of a cell; a longer one was pasted by mistake, and ten times as long no CSV reader takes it."""
MOST_NAMED = 20
"""Bad rows that are named one by one; the others are counted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PriceRow:
    """The price of a GPU-hour at one provider, in one region, under one commitment, observed between two dates."""

    id: str
    """Unique within its book."""
    gpu: str
    """Catalogue id."""
    provider: str
    """Slug, for example `aws`."""
    region: str
    """The provider's own name of the region; `all` where one price holds everywhere; empty where unknown."""
    instance: str
    """The provider's own name of the machine; empty where unknown."""
    gpus_per_instance: int
    commitment: str
    """One of `COMMITMENTS`."""
    price_per_gpu_h: Decimal
    currency: str
    """ISO 4217."""
    seller: str
    """`provider`, `broker` (a provider's price through a broker), or `marketplace` (asks of third-party hosts)."""
    date_earliest: date
    """The price was valid on some day from this one …"""
    date_latest: date
    """… to this one; both are the same where the day is known. In the future where a source gives only the year."""
    date_basis: str
    """How the two dates are known."""
    source: str
    """Where the price can be looked up."""
    notes: str = ""

    def is_stale(self, as_of: date) -> bool:
        """Whether its newest possible day is more than 90 days before `as_of`."""
        return (as_of - self.date_latest).days > STALE_AFTER_DAYS

    @property
    def date_text(self) -> str:
        """The day, or the ISO 8601 interval in which it lies."""
        if self.date_earliest == self.date_latest:
            return self.date_latest.isoformat()
        return f"{self.date_earliest.isoformat()}/{self.date_latest.isoformat()}"


@dataclass(frozen=True, slots=True, kw_only=True)
class BadRow:
    """A line of a price book that holds no price."""

    line: int
    """Line on which it ends, the header being line 1."""
    text: str
    """As it stands in the file."""
    error: InputFileError
    """What is wrong with it, with file and line."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SetAside:
    """The bad rows of a file, which do not count."""

    file: str
    """Name of the file; empty where there is none."""
    rows: tuple[BadRow, ...]
    """The first `MOST_NAMED` of them."""
    count: int
    """How many there are in all."""

    def lines(self) -> str:
        """Their line numbers: `line 3`, or `lines 3, 7, 9 and 12 more`."""
        numbers = ", ".join(str(row.line) for row in self.rows)
        more = f" and {self.count - len(self.rows)} more" if self.count > len(self.rows) else ""
        return f"line{'' if self.count == 1 else 's'} {numbers}{more}"


MEND = "`mpplan prices repair` mends the book"
"""The hint for a user's book that cannot be read."""
NONE_ASIDE = SetAside(file="", rows=(), count=0)
"""Of a file without bad rows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PriceBook:
    """Rows from one or more files, ids unique."""

    rows: tuple[PriceRow, ...]
    set_aside: SetAside = NONE_ASIDE
    """The bad rows of the user's file."""

    def providers(self) -> tuple[str, ...]:
        """Every provider, sorted."""
        return tuple(sorted({row.provider for row in self.rows}))

    def plus(self, rows: Iterable[PriceRow]) -> PriceBook:
        """This book with more rows; a row that the book has already is left out.

        Raises:
            UsageError: two different rows have the same id.
        """
        known = {row.id: row for row in self.rows}
        added: list[PriceRow] = []
        for row in rows:
            other = known.setdefault(row.id, row)
            if other is row:
                added.append(row)
            elif other != row:
                raise UsageError(
                    f"two different price rows have the id `{row.id}`", hint="give the newer row another id"
                )
        return PriceBook(rows=self.rows + tuple(added), set_aside=self.set_aside)


def _price(row: Row) -> Decimal:
    price = row.decimal("price_per_gpu_h", above_zero=True)
    if price > HIGHEST_PER_GPU_H:
        raise row.fail("price_per_gpu_h", f"at most {HIGHEST_PER_GPU_H} per GPU-hour in any currency")
    if row.cell("currency") == "USD" and price > HIGHEST_PLAUSIBLE_PER_GPU_H:
        expected = f"at most {HIGHEST_PLAUSIBLE_PER_GPU_H} USD per GPU-hour (is it per instance, or in cents?)"
        raise row.fail("price_per_gpu_h", expected)
    return price


def _in_one_line(row: Row) -> Row:
    """The row with every cell on one line.

    Raises:
        InputFileError: a cell is longer than `MOST_CHARACTERS`.
    """
    for column in COLUMNS:
        if len(row.cell(column)) > MOST_CHARACTERS:
            raise row.fail(column, f"at most {MOST_CHARACTERS} characters")
    return replace(row, cells={column: one_line(row.cell(column)) for column in COLUMNS})


def price_row(row: Row) -> PriceRow:
    """The price in a line that has all of `COLUMNS`; line ends and control characters in its cells become blanks.

    Raises:
        InputFileError: a cell is missing or is not what its column holds.
    """
    row = _in_one_line(row)
    earliest, latest = row.day("date_earliest"), row.day("date_latest")
    if latest < earliest:
        raise row.fail("date_latest", f"a day not before date_earliest ({earliest})")
    return PriceRow(
        id=row.text("id"),
        gpu=row.text("gpu"),
        provider=row.text("provider").lower(),
        region=row.cell("region"),
        instance=row.cell("instance"),
        gpus_per_instance=row.integer("gpus_per_instance", low=1),
        commitment=row.choice("commitment", COMMITMENTS),
        price_per_gpu_h=_price(row),
        currency=read_currency(row),
        seller=row.choice("seller", SELLERS),
        date_earliest=earliest,
        date_latest=latest,
        date_basis=row.cell("date_basis"),
        source=row.text("source"),
        notes=row.cell("notes"),
    )


def book_lines(
    lines: Iterable[str], name: str, gpu: str | None = None, taken: Mapping[str, PriceRow] | None = None
) -> Iterator[tuple[str, PriceRow | BadRow]]:
    """Every line of a price book as it stands, with the price in it or what is wrong with it.

    Args:
        lines: the file's lines; a byte that is no UTF-8 stands as a lone surrogate (`surrogateescape`).
        name: the file's name, for errors.
        gpu: only good rows of this GPU.
        taken: rows of another book, whose ids no other row may have.

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
    """The price book in these lines; see `book_lines`.

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
    """The lines of a price book for `book_lines`; the caller closes them.

    Raises:
        UsageError: the file is missing or may not be read.
        InputFileError: it is not a regular file, or is too large.
    """
    return TextIOWrapper(open_file(path), encoding="utf-8-sig", errors="surrogateescape", newline="")


def read_book(path: Path) -> PriceBook:
    """Read a price book CSV; bad rows are set aside.

    Raises:
        UsageError: the file cannot be read.
        InputFileError: it is no file, is too large, or lacks a column.
    """
    with open_book(path) as lines:
        return parse_book(lines, str(path))


def refuse_bad_rows(book: PriceBook) -> None:
    """Refuse a book with bad rows, for where all of a file is wanted or none of it.

    Raises:
        InputFileError: what is wrong with the first; the hint names the lines of all.
    """
    if book.set_aside.rows:
        first = book.set_aside.rows[0].error
        hint = first.hint if book.set_aside.count == 1 else f"correct {book.set_aside.lines()}"
        raise InputFileError(first.message, hint=hint)


@lru_cache(maxsize=1)
def shipped_book() -> PriceBook:
    """The rows shipped with the package."""
    return PriceBook(rows=tuple(keyed(read_rows(DATA / "gpu_prices.csv", COLUMNS), price_row).values()))


@lru_cache(maxsize=1)
def shipped_by_id() -> dict[str, PriceRow]:
    """The shipped rows by id: a row of the user's may not take the id of another of these."""
    return {row.id: row for row in shipped_book().rows}


def user_book_path() -> Path:
    """The user's own price book: rows that were added, imported or fetched."""
    return data_dir() / "prices.csv"


def load_user_book(gpu: str | None = None) -> PriceBook:
    """The user's own rows, optionally of one GPU only; none where there is no such book. Bad rows are set aside.

    Raises:
        InputFileError: the book has no header, or is no file.
        UsageError: it cannot be read.
    """
    path = user_book_path()
    if not path.exists():
        return PriceBook(rows=())
    try:
        with open_book(path) as lines:
            return parse_book(lines, str(path), gpu, shipped_by_id())
    except InputFileError as error:
        raise InputFileError(error.message, hint=MEND) from None


def load_book(gpu: str | None = None) -> PriceBook:
    """The shipped rows and the user's, optionally of one GPU only.

    Raises:
        InputFileError: the user's book has no header, or is no file.
        UsageError: it cannot be read.
    """
    shipped = PriceBook(rows=tuple(row for row in shipped_book().rows if gpu is None or row.gpu == gpu))
    own = load_user_book(gpu)
    return replace(shipped.plus(own.rows), set_aside=own.set_aside)
