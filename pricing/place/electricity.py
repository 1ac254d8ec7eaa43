"""The price of a kilowatt-hour: the user's, or a dated row for a country or a US state."""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from functools import lru_cache

from planner.errors import Message, UsageError
from planner.evidence import Estimate, Evidence, EvidenceKind, Gap
from planner.lazy import dataclass
from planner.rows import Row, read_rows
from pricing.base.fact import Fact, given
from pricing.base.folder import DATA
from pricing.base.money import read_currency
from pricing.book.conversion import stale_rate_gap
from pricing.book.current import quantile
from pricing.files.exchange_rates import load_rates, usd_rate

DEFAULT_ZONE = "USA"

HIGHEST_PLAUSIBLE_PER_KWH = 2.0
"""In USD or EUR; a higher price is in cents."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ElectricityRow:
    """A published price of electricity for one kind of consumer."""

    id: str
    zone: str
    """`USA`, `US-TX`, `EU27`, `FIN`."""
    name: str
    """Name of the zone."""
    price_per_kwh: Decimal
    currency: str
    """ISO 4217 code."""
    consumer: str
    """Kind of consumer, for example `industrial`."""
    date_earliest: date
    """First day of the period over which the price is averaged."""
    date_latest: date
    """Last day of that period."""
    source: str
    notes: str


@lru_cache(maxsize=1)
def electricity_rows() -> tuple[ElectricityRow, ...]:
    """Return the rows of `electricity.csv`."""
    return tuple(_row(row) for row in read_rows(DATA / "electricity.csv"))


def _row(row: Row) -> ElectricityRow:
    return ElectricityRow(
        id=row.text("id"),
        zone=row.text("zone"),
        name=row.text("name"),
        price_per_kwh=row.decimal("price_per_kwh", above_zero=True, high=HIGHEST_PLAUSIBLE_PER_KWH),
        currency=read_currency(row),
        consumer=row.text("consumer"),
        date_earliest=row.day("date_earliest"),
        date_latest=row.day("date_latest"),
        source=row.text("source"),
        notes=row.cell("notes"),
    )


def given_electricity(usd_per_kwh: float) -> Fact:
    """Return the price that the user gave.

    Raises:
        UsageError: it is below 0 or above 2 USD per kWh.
    """
    if not 0 <= usd_per_kwh <= HIGHEST_PLAUSIBLE_PER_KWH:
        raise UsageError(
            f"`--electricity {usd_per_kwh:g}` is not a plausible price in USD per kWh",
            hint="give 0 to 2; 8.26 cents are 0.0826",
        )
    what = f"electricity at {usd_per_kwh:g} USD per kWh"
    return Fact(
        estimate=Estimate.exactly(usd_per_kwh),
        evidence=given("electricity:given", what, "--electricity", ("cost_usd",)),
    )


def _newest(zone: str, as_of: date) -> ElectricityRow | None:
    """Return the newest row of a zone; annual averages are preferred to monthly ones."""
    rows = [row for row in electricity_rows() if row.zone == zone and row.date_earliest <= as_of]
    return max(rows, key=lambda row: ((row.date_latest - row.date_earliest).days > 40, row.date_latest), default=None)


def electricity_of(zone: str | None, region: str | None, as_of: date) -> Fact | Gap:
    """Return the newest price of a zone known on a day; a gap where there is none that can be converted to USD.

    A US state without a row gets the US average. Without a region the US average is used, with the 5th and 95th
    percentile of the states as range.

    Args:
        zone: country or US state; None where it is not known.
        region: the place as the user named it; None where none was named.
        as_of: the day of the price.
    """
    row = _newest(zone, as_of) if zone else None
    if row is None and zone and zone.startswith("US-"):
        row = _newest(DEFAULT_ZONE, as_of)
    rate = usd_rate(row.currency, as_of, load_rates()) if row is not None else None
    if row is None or rate is None:
        why = (
            Message.of("place.no_electricity_row", region=region or "")
            if row is None
            else Message.of("place.no_exchange_rate", row=row.id, currency=row.currency)
        )
        return Gap.of("place.electricity", why=why)
    usd = row.price_per_kwh * rate.usd_per_unit
    low, high = _state_range(usd, as_of) if row.zone == DEFAULT_ZONE and not region else (usd, usd)
    what = f"{row.name}, {row.consumer}, {row.date_latest.year}: {row.price_per_kwh} {row.currency} per kWh"
    if row.currency != "USD":
        what += f" = {usd:f} USD at {rate.usd_per_unit} of {rate.date} ({rate.source})"
    return Fact(
        estimate=Estimate(low=float(min(low, usd)), mid=float(usd), high=float(max(high, usd))),
        evidence=Evidence(
            id=f"electricity:{row.id}",
            kind=EvidenceKind.PUBLISHED if region else EvidenceKind.ASSUMED,
            what=what,
            source=row.source,
            date=f"{row.date_earliest}/{row.date_latest}",
            used_in=("cost_usd",),
            public=True,
        ),
        gap=stale_rate_gap([rate], as_of),
    )


def _state_range(average: Decimal, as_of: date) -> tuple[Decimal, Decimal]:
    """Return the 5th and 95th percentile over the US states with a row; the average twice where none has one."""
    zones = sorted({row.zone for row in electricity_rows() if row.zone.startswith("US-")})
    newest = [_newest(zone, as_of) for zone in zones]
    prices = tuple(sorted(row.price_per_kwh for row in newest if row is not None)) or (average,)
    return quantile(prices, Decimal("0.05")), quantile(prices, Decimal("0.95"))
