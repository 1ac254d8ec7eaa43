"""Exchange rates: a conversion happens only with a dated rate, and says which."""

from __future__ import annotations

import csv
import io
from dataclasses import dataclass
from datetime import date
from decimal import Decimal

from planner.errors import InputFileError
from pricing.base.folder import data_dir, read_if_there
from pricing.base.money import CURRENCIES, parse_amount

RATE_COLUMNS = ("currency", "usd_per_unit", "date", "source")


@dataclass(frozen=True, slots=True, kw_only=True)
class ExchangeRate:
    """What one unit of a currency was worth in USD on one day."""

    currency: str
    usd_per_unit: Decimal
    date: date
    source: str


def parse_rates(text: str, name: str) -> tuple[ExchangeRate, ...]:
    """Read a CSV with the columns `RATE_COLUMNS`.

    Raises:
        InputFileError: a column is missing or a cell is not what its column holds.
    """
    reader = csv.DictReader(io.StringIO(text))
    hint = f"the columns are {', '.join(RATE_COLUMNS)}"
    if any(column not in (reader.fieldnames or ()) for column in RATE_COLUMNS):
        raise InputFileError(f"{name}:1: header: expected the columns {', '.join(RATE_COLUMNS)}", hint=hint)
    rates = []
    for cells in reader:
        where = f"{name}:{reader.line_num}"
        value = parse_amount(cells["usd_per_unit"] or "")
        if cells["currency"] not in CURRENCIES:
            raise InputFileError(
                f"{where}: currency: expected an ISO 4217 code, found `{cells['currency']}`", hint=hint
            )
        if value is None or value <= 0:
            raise InputFileError(
                f"{where}: usd_per_unit: expected more than 0, found `{cells['usd_per_unit']}`", hint=hint
            )
        try:
            day = date.fromisoformat(cells["date"])
        except (TypeError, ValueError):
            raise InputFileError(f"{where}: date: expected an ISO date, found `{cells['date']}`", hint=hint) from None
        rates.append(
            ExchangeRate(currency=cells["currency"], usd_per_unit=value, date=day, source=cells["source"] or "")
        )
    return tuple(rates)


def load_rates() -> tuple[ExchangeRate, ...]:
    """The user's rates, `exchange_rates.csv` in the data folder; none are shipped.

    Raises:
        InputFileError: see `parse_rates`.
    """
    path = data_dir() / "exchange_rates.csv"
    text = read_if_there(path)
    return parse_rates(text, str(path)) if text is not None else ()


def usd_rate(currency: str, as_of: date, rates: tuple[ExchangeRate, ...]) -> ExchangeRate | None:
    """The newest rate of a currency on or before a day; None where there is none. USD needs none and has 1."""
    if currency == "USD":
        return ExchangeRate(currency="USD", usd_per_unit=Decimal(1), date=as_of, source="")
    known = [rate for rate in rates if rate.currency == currency and rate.date <= as_of]
    return max(known, key=lambda rate: rate.date, default=None)
