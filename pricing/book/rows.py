"""The price book: dated rows of what a GPU-hour costs, shipped with the package and kept by the user."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from functools import lru_cache
from pathlib import Path

from planner.errors import InputFileError, UsageError
from pricing.base.folder import data_dir, read_if_there
from pricing.base.money import CURRENCIES, parse_amount

DATA = Path(__file__).parent.parent / "data"
"""The rows shipped with the package."""

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
"""In USD; the dearest row known is 17.80. Above this the price is of a server, or in cents."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PriceRow:
    """What one GPU-hour costs at one provider, in one region, under one commitment, as seen between two dates."""

    id: str
    """Unique within its book."""
    gpu: str
    """Catalogue id."""
    provider: str
    """Slug, for example `aws`."""
    region: str
    """The provider's own name of the region; `all` where one price holds everywhere; empty where unknown."""
    instance: str
    gpus_per_instance: int
    commitment: str
    """One of `COMMITMENTS`."""
    price_per_gpu_h: Decimal
    currency: str
    """ISO 4217."""
    seller: str
    """`provider`, `broker` (a provider's price through a broker), or `marketplace` (asks of third-party hosts)."""
    date_earliest: date
    """The price held at some day between this one …"""
    date_latest: date
    """… and this one; the same day where it is known. May lie in the future where a source gives only a year."""
    date_basis: str
    source: str
    notes: str = ""

    def is_stale(self, as_of: date) -> bool:
        """Whether its newest possible day is more than 90 days before `as_of`."""
        return (as_of - self.date_latest).days > STALE_AFTER_DAYS

    @property
    def date_text(self) -> str:
        """The day, or the ISO 8601 interval that holds it."""
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
        """This book with more rows; a row whose id is taken already is left out if equal, else an error.

        Raises:
            UsageError: one id stands for two different rows.
        """
        known = {row.id: row for row in self.rows}
        added: list[PriceRow] = []
        for row in rows:
            other = known.setdefault(row.id, row)
            if other is row:
                added.append(row)
            elif other != row:
                raise UsageError(
                    f"price row id `{row.id}` stands for two different rows", hint="give the newer row another id"
                )
        return PriceBook(rows=self.rows + tuple(added))


def _fail(where: str, key: str, expected: str) -> InputFileError:
    return InputFileError(f"{where}: {key}: {expected}", hint="`mpplan prices check FILE` lists every row at fault")


def _price(where: str, cells: dict[str, str]) -> Decimal:
    text = cells["price_per_gpu_h"]
    price = parse_amount(text)
    if price is None:
        raise _fail(where, "price_per_gpu_h", f"expected a decimal number, found `{text}`")
    if price <= 0:
        raise _fail(where, "price_per_gpu_h", f"expected more than 0, found `{text}`; leave an unknown price out")
    if cells["currency"] == "USD" and price > HIGHEST_PLAUSIBLE_PER_GPU_H:
        raise _fail(where, "price_per_gpu_h", f"`{text}` USD per GPU-hour is not plausible; per instance, or in cents?")
    return price


def _day(where: str, key: str, text: str) -> date:
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise _fail(where, key, f"expected an ISO date such as 2026-08-28, found `{text}`") from None


def _one_of(where: str, key: str, text: str, allowed: Sequence[str]) -> str:
    if text not in allowed:
        raise _fail(where, key, f"expected one of {', '.join(allowed)}, found `{text}`")
    return text


def parse_row(cells: dict[str, str], where: str) -> PriceRow:
    """One row of a book from the cells of a CSV line.

    Args:
        cells: text by column, all of `COLUMNS`.
        where: `file:line`, for the message.

    Raises:
        InputFileError: a cell is missing or is not what its column holds.
    """
    for key in ("id", "gpu", "provider", "source"):
        if not cells[key]:
            raise _fail(where, key, "expected a value")
    if cells["currency"] not in CURRENCIES:
        raise _fail(where, "currency", f"expected an ISO 4217 code such as USD, found `{cells['currency']}`")
    if not cells["gpus_per_instance"].isdigit() or int(cells["gpus_per_instance"]) < 1:
        raise _fail(where, "gpus_per_instance", f"expected a count of 1 or more, found `{cells['gpus_per_instance']}`")
    earliest = _day(where, "date_earliest", cells["date_earliest"])
    latest = _day(where, "date_latest", cells["date_latest"])
    if latest < earliest:
        raise _fail(where, "date_latest", f"expected a day not before date_earliest, found `{latest}`")
    return PriceRow(
        id=cells["id"],
        gpu=cells["gpu"],
        provider=cells["provider"].lower(),
        region=cells["region"],
        instance=cells["instance"],
        gpus_per_instance=int(cells["gpus_per_instance"]),
        commitment=_one_of(where, "commitment", cells["commitment"], COMMITMENTS),
        price_per_gpu_h=_price(where, cells),
        currency=cells["currency"],
        seller=_one_of(where, "seller", cells["seller"], SELLERS),
        date_earliest=earliest,
        date_latest=latest,
        date_basis=cells["date_basis"],
        source=cells["source"],
        notes=cells["notes"],
    )


def parse_book(text: str, name: str, gpu: str | None = None) -> PriceBook:
    """Read a price book CSV; ids must be unique.

    Args:
        text: the file's content.
        name: the file's name, for messages.
        gpu: only read rows of this catalogue id (a book may hold a million rows).

    Raises:
        InputFileError: a column is missing, a row is invalid, or an id occurs twice.
    """
    reader = csv.reader(io.StringIO(text.removeprefix("\ufeff")))
    header = next(reader, [])
    missing = [column for column in COLUMNS if column not in header]
    if missing:
        raise _fail(f"{name}:1", missing[0], f"expected the columns {', '.join(COLUMNS)}")
    gpu_at = header.index("gpu")
    rows: dict[str, PriceRow] = {}
    for cells in reader:
        if not cells or (gpu is not None and len(cells) == len(header) and cells[gpu_at] != gpu):
            continue
        where = f"{name}:{reader.line_num}"
        if len(cells) != len(header):
            raise _fail(where, "row", f"expected {len(header)} cells, found {len(cells)}")
        row = parse_row({key: cell.strip() for key, cell in zip(header, cells, strict=True)}, where)
        if row.id in rows:
            raise _fail(where, "id", f"`{row.id}` occurs twice")
        rows[row.id] = row
    return PriceBook(rows=tuple(rows.values()))


@lru_cache(maxsize=1)
def shipped_book() -> PriceBook:
    """The rows shipped with the package."""
    return parse_book((DATA / "gpu_prices.csv").read_text(encoding="utf-8"), "gpu_prices.csv")


def user_book_path() -> Path:
    """The user's own book: rows added, imported and refreshed."""
    return data_dir() / "prices.csv"


def load_book(gpu: str | None = None) -> PriceBook:
    """The shipped rows and the user's, optionally of one GPU only.

    Raises:
        InputFileError: the user's book is damaged.
        UsageError: it cannot be read.
    """
    path = user_book_path()
    text = read_if_there(path)
    own = parse_book(text, str(path), gpu).rows if text is not None else ()
    rows = (row for row in shipped_book().rows if gpu is None or row.gpu == gpu)
    return PriceBook(rows=tuple(rows)).plus(own)
