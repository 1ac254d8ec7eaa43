"""Exchange rates: prices in another currency are converted only with a dated rate that the user supplies."""

from __future__ import annotations

from datetime import date
from decimal import Decimal

from planner.lazy import dataclass
from planner.records.home import data_dir, has_data_dir
from planner.rows import Row
from planner.text import one_line
from pricing.base.folder import user_rows
from pricing.base.money import read_currency

RATE_COLUMNS = ("currency", "usd_per_unit", "date", "source")

LARGEST_USD_PER_UNIT = Decimal(10_000)
"""Upper limit of a rate: the most valuable unit of a currency is worth a few USD, the least some millionths."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExchangeRate:
    """The value of one unit of a currency in USD on one day."""

    currency: str
    """ISO 4217 code."""
    usd_per_unit: Decimal
    date: date
    source: str
    """Where the rate can be looked up; may be empty."""


def load_rates() -> tuple[ExchangeRate, ...]:
    """Return the user's rates from `exchange_rates.csv` in the data folder; none are shipped.

    Raises:
        UsageError: the file cannot be read.
        InputFileError: a column is missing, a cell is invalid for its column, or two lines state different rates of a
            currency on one day.
    """
    if not has_data_dir():
        return ()
    rates: dict[tuple[str, date], tuple[ExchangeRate, int | None]] = {}
    for row in user_rows(data_dir() / "exchange_rates.csv", RATE_COLUMNS):
        rate = _rate(row)
        first, line = rates.setdefault((rate.currency, rate.date), (rate, row.line))
        if first.usd_per_unit != rate.usd_per_unit:
            same = f"{first.usd_per_unit:f} as in line {line}, for the same currency and day"
            raise row.fail("usd_per_unit", same)
    return tuple(rate for rate, _ in rates.values())


def _rate(row: Row) -> ExchangeRate:
    return ExchangeRate(
        currency=read_currency(row),
        usd_per_unit=_usd_per_unit(row),
        date=row.day("date"),
        source=one_line(row.cell("source")),
    )


def _usd_per_unit(row: Row) -> Decimal:
    rate = row.decimal("usd_per_unit", above_zero=True)
    if not 1 / LARGEST_USD_PER_UNIT**2 <= rate <= LARGEST_USD_PER_UNIT:
        raise row.fail("usd_per_unit", f"USD for one unit, at most {LARGEST_USD_PER_UNIT}")
    return rate


def usd_rate(currency: str, as_of: date, rates: tuple[ExchangeRate, ...]) -> ExchangeRate | None:
    """Return the newest rate of a currency on or before a day; None where there is none. For USD it is always 1."""
    if currency == "USD":
        return ExchangeRate(currency="USD", usd_per_unit=Decimal(1), date=as_of, source="")
    known = [rate for rate in rates if rate.currency == currency and rate.date <= as_of]
    return max(known, key=lambda rate: rate.date, default=None)
