"""The price book: dated prices of a GPU-hour, shipped with the package or added by the user."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from datetime import date
from decimal import Decimal
from pathlib import Path

from planner.errors import InputFileError, Message, UsageError
from planner.lazy import dataclass
from planner.rows import Row
from planner.text import one_line
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
"""In USD; the highest known price is 17.80. A higher price is per server, or in cents."""

HIGHEST_PER_GPU_H = 10**9
"""Limit in any currency: 200 USD in the currency with the least valuable unit, with room for that to fall."""
MOST_CHARACTERS = 10_000
"""Length limit of a cell; a longer text was pasted by mistake, and CSV readers refuse one ten times as long."""
MOST_NAMED = 20
"""Number of bad rows that are named individually; the others are only counted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PriceRow:
    """Price of a GPU-hour at one provider, in one region, under one commitment, observed between two dates."""

    id: str
    """Unique within its book."""
    gpu: str
    """Catalogue id."""
    provider: str
    """Slug, for example `aws`."""
    region: str
    """The provider's own name of the region; `all` where one price applies everywhere; empty where unknown."""
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
    """… to this one; both are the same where the day is known. Never later than the day on which the row was written:
    a row dated into the future would outlast newer prices."""
    date_basis: str
    """How the two dates are known."""
    source: str
    """Where the price can be looked up."""
    notes: str = ""

    def is_stale(self, as_of: date) -> bool:
        """Return whether its newest possible day is more than 90 days before `as_of`."""
        return (as_of - self.date_latest).days > STALE_AFTER_DAYS

    def may_be_stale(self, as_of: date) -> bool:
        """Return whether its age is not known: its oldest possible day is stale on `as_of`, its newest is not."""
        return (as_of - self.date_earliest).days > STALE_AFTER_DAYS and not self.is_stale(as_of)

    @property
    def offer(self) -> tuple[str, ...]:
        """The offer that the price is for; two rows with the same one must have the same price."""
        days = (self.date_earliest.isoformat(), self.date_latest.isoformat())
        place = (self.provider, self.gpu, self.region.lower(), self.instance)
        return (*place, self.commitment, self.currency, self.seller, *days)

    @property
    def date_text(self) -> str:
        """The day, or the ISO 8601 interval that contains it."""
        if self.date_earliest == self.date_latest:
            return self.date_latest.isoformat()
        return f"{self.date_earliest.isoformat()}/{self.date_latest.isoformat()}"


@dataclass(frozen=True, slots=True, kw_only=True)
class BadRow:
    """A line of a price book that does not hold a price."""

    line: int
    """Line number of its end; the header is line 1."""
    text: str
    """Its text in the file."""
    error: InputFileError
    """The error in it, with file and line."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SetAside:
    """The bad rows of a file, which do not count."""

    file: str
    """Name of the file; empty where there is none."""
    rows: tuple[BadRow, ...]
    """The first `MOST_NAMED` bad rows."""
    count: int
    """Number of all bad rows."""

    def lines(self) -> str:
        """Return their line numbers in any language: `3`, or `3, 7, 9, … (15)` where there are more than are named."""
        numbers = ", ".join(str(row.line) for row in self.rows)
        return f"{numbers}, … ({self.count})" if self.count > len(self.rows) else numbers

    def warnings(self) -> tuple[Message, ...]:
        """Return a warning with the file and the lines, where there are bad rows."""
        if not self.count:
            return ()
        return (Message.of("price.warning.set_aside", file=Path(self.file).name, lines=self.lines()),)


MEND = "`mpplan prices repair` repairs the book"
"""Hint for a user's book that cannot be read."""
NONE_ASIDE = SetAside(file="", rows=(), count=0)
"""Used for a file without bad rows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PriceBook:
    """Price rows from one or more files, with unique ids."""

    rows: tuple[PriceRow, ...]
    set_aside: SetAside = NONE_ASIDE
    """The bad rows of the user's file."""

    def providers(self) -> tuple[str, ...]:
        """Return every provider, sorted."""
        return tuple(sorted({row.provider for row in self.rows}))

    def plus(self, rows: Iterable[PriceRow]) -> PriceBook:
        """Return this book with more rows; a row that the book already has is left out.

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
    """Return the row with every cell on one line.

    Raises:
        InputFileError: a cell is longer than `MOST_CHARACTERS`.
    """
    text = "".join(row.cells.values())
    if text.isprintable() and len(text) <= MOST_CHARACTERS:
        return row  # true of nearly all rows; the others are checked cell by cell
    for column in COLUMNS:
        if len(row.cell(column)) > MOST_CHARACTERS:
            raise row.fail(column, f"at most {MOST_CHARACTERS} characters")
    return replace(row, cells={column: one_line(row.cell(column)) for column in COLUMNS})


def price_row(row: Row) -> PriceRow:
    """Return the price in a line that has all of `COLUMNS`; line ends and control characters become blanks.

    Raises:
        InputFileError: a cell is missing or is invalid for its column.
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
