"""Exchange rates: dated, of ISO currencies, newest on or before the day."""

from __future__ import annotations

from datetime import date
from decimal import Decimal

import pytest

from planner.errors import InputFileError
from pricing.files.exchange_rates import load_rates, parse_rates, usd_rate

TEXT = "currency,usd_per_unit,date,source\nEUR,1.08,2026-01-01,bank\nEUR,1.12,2026-06-01,bank\n"


def test_the_newest_rate_on_or_before_the_day_is_used():
    rates = parse_rates(TEXT, "x.csv")

    assert usd_rate("EUR", date(2026, 5, 31), rates).usd_per_unit == Decimal("1.08")
    assert usd_rate("EUR", date(2026, 6, 1), rates).usd_per_unit == Decimal("1.12")
    assert usd_rate("EUR", date(2025, 1, 1), rates) is None
    assert usd_rate("USD", date(2025, 1, 1), ()).usd_per_unit == 1


def test_no_rates_are_shipped():
    assert load_rates() == ()


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("XXQ,1.0,2026-01-01,bank", "currency: expected an ISO 4217 code, found `XXQ`"),
        ("EUR,0,2026-01-01,bank", "usd_per_unit: expected more than 0, found `0`"),
        ("EUR,1.1,yesterday,bank", "date: expected an ISO date, found `yesterday`"),
    ],
)
def test_a_wrong_rate_is_named_with_its_line(line, said):
    with pytest.raises(InputFileError) as caught:
        parse_rates(TEXT + line + "\n", "x.csv")

    assert caught.value.message == f"x.csv:4: {said}"


def test_missing_columns_are_named():
    with pytest.raises(InputFileError, match=r"x.csv:1: header"):
        parse_rates("currency,rate\nEUR,1\n", "x.csv")
