"""Exchange rates: dated, of ISO currencies, newest on or before the day."""

from __future__ import annotations

from datetime import date
from decimal import Decimal

import pytest

from planner.errors import InputFileError
from pricing.files.exchange_rates import load_rates, usd_rate

TEXT = "currency,usd_per_unit,date,source\nEUR,1.08,2026-01-01,bank\nEUR,1.12,2026-06-01,bank\n"


@pytest.fixture
def rates_of(data_home):
    """Writes the user's exchange rates and reads them."""

    def read(text):
        data_home.mkdir(parents=True, exist_ok=True)
        (data_home / "exchange_rates.csv").write_text(text, encoding="utf-8")
        return load_rates()

    return read


def test_the_newest_rate_on_or_before_the_day_is_used(rates_of):
    rates = rates_of(TEXT)

    assert usd_rate("EUR", date(2026, 5, 31), rates).usd_per_unit == Decimal("1.08")
    assert usd_rate("EUR", date(2026, 6, 1), rates).usd_per_unit == Decimal("1.12")
    assert usd_rate("EUR", date(2025, 12, 31), rates) is None
    assert usd_rate("USD", date(2025, 1, 1), ()).usd_per_unit == 1


def test_the_same_rate_twice_is_one_rate(rates_of):
    assert rates_of(TEXT + "EUR,1.080,2026-01-01,other\n") == rates_of(TEXT)


def test_no_rates_are_shipped():
    assert load_rates() == ()


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("XXQ,1.0,2026-01-01,bank", "currency: expected an ISO 4217 code such as USD, found `XXQ`"),
        ("EUR,0,2026-01-01,bank", "usd_per_unit: expected a decimal number above 0, found `0`"),
        ("EUR,1e400,2026-01-01,bank", "usd_per_unit: expected a decimal number above 0, found `1e400`"),
        ("EUR,nan,2026-01-01,bank", "usd_per_unit: expected a decimal number above 0, found `nan`"),
        ("EUR,1e9,2026-01-01,bank", "usd_per_unit: expected USD for one unit, at most 10000, found `1e9`"),
        (
            "EUR,1.3,2026-01-01,other",
            "usd_per_unit: expected 1.08 as in line 2, for the same currency and day, found `1.3`",
        ),
        ("EUR,1.1,yesterday,bank", "date: expected an ISO date such as 2026-08-28, found `yesterday`"),
    ],
)
def test_a_wrong_rate_is_named_with_its_file_and_line(rates_of, data_home, line, problem):
    with pytest.raises(InputFileError) as caught:
        rates_of(TEXT + line + "\n")

    assert caught.value.message == f"{data_home / 'exchange_rates.csv'}:4: {problem}"


@pytest.mark.parametrize(("cell", "rate"), [("1,1", "1.1"), ("0,0065", "0.0065"), ("0,123", "0.123")])
def test_a_comma_is_a_decimal_mark_where_it_can_be_nothing_else(rates_of, cell, rate):
    (read,) = rates_of(f'currency,usd_per_unit,date,source\nEUR,"{cell}",2026-01-01,bank\n')

    assert read.usd_per_unit == Decimal(rate)


def test_a_comma_that_may_stand_for_thousands_is_refused(rates_of):
    with pytest.raises(InputFileError, match="usd_per_unit: expected a number with a point as decimal mark"):
        rates_of('currency,usd_per_unit,date,source\nEUR,"1,100",2026-01-01,bank\n')


def test_missing_columns_are_named(rates_of):
    with pytest.raises(InputFileError, match=r"exchange_rates.csv:1: usd_per_unit: expected a column of this name"):
        rates_of("currency,rate\nEUR,1\n")
