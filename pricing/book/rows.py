"""The price book: dated prices of a GPU-hour, shipped with the package or added by the user."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from functools import lru_cache
from pathlib import Path

from planner.errors import UsageError
from planner.records.home import data_dir, has_data_dir
from planner.rows import Row, keyed, read_rows
from pricing.base.folder import DATA, user_rows
from pricing.base.money import read_currency

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
class PriceBook:
    """Rows from one or more files, ids unique."""

    rows: tuple[PriceRow, ...]

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
        return PriceBook(rows=self.rows + tuple(added))


def _price(row: Row) -> Decimal:
    price = row.decimal("price_per_gpu_h", above_zero=True)
    if row.cell("currency") == "USD" and price > HIGHEST_PLAUSIBLE_PER_GPU_H:
        expected = f"at most {HIGHEST_PLAUSIBLE_PER_GPU_H} USD per GPU-hour (is it per instance, or in cents?)"
        raise row.fail("price_per_gpu_h", expected)
    return price


def price_row(row: Row) -> PriceRow:
    """The price in a line that has all of `COLUMNS`.

    Raises:
        InputFileError: a cell is missing or is not what its column holds.
    """
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


def read_book(path: Path) -> PriceBook:
    """Read a price book CSV.

    Raises:
        UsageError: the file cannot be read.
        InputFileError: it is not UTF-8, a column is missing, a row is invalid, or an id occurs twice.
    """
    return _book(read_rows(path, COLUMNS, name=str(path)))


def _book(rows: Iterable[Row]) -> PriceBook:
    return PriceBook(rows=tuple(keyed(rows, price_row).values()))


@lru_cache(maxsize=1)
def shipped_book() -> PriceBook:
    """The rows shipped with the package."""
    return _book(read_rows(DATA / "gpu_prices.csv", COLUMNS))


def user_book_path() -> Path:
    """The user's own price book: rows that were added, imported or fetched."""
    return data_dir() / "prices.csv"


def load_user_book(gpu: str | None = None) -> PriceBook:
    """The user's own rows, optionally of one GPU only; none where there is no such book.

    Raises:
        InputFileError: the book is damaged.
        UsageError: it cannot be read.
    """
    if not has_data_dir():
        return PriceBook(rows=())
    return _book(user_rows(user_book_path(), COLUMNS, only=None if gpu is None else ("gpu", gpu)))


def load_book(gpu: str | None = None) -> PriceBook:
    """The shipped rows and the user's, optionally of one GPU only.

    Raises:
        InputFileError: the user's book is damaged.
        UsageError: it cannot be read.
    """
    rows = (row for row in shipped_book().rows if gpu is None or row.gpu == gpu)
    return PriceBook(rows=tuple(rows)).plus(load_user_book(gpu).rows)
