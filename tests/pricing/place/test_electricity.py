"""Electricity prices: rows per kWh, newest whole year first, no silent conversion."""

from __future__ import annotations

from datetime import date
from decimal import Decimal

import pytest

from planner.errors import UsageError
from planner.evidence import Gap
from pricing.place.electricity import electricity_of, electricity_rows, given_electricity
from reports.text.messages import word


def test_rows_are_prices_per_kwh_in_currency_not_in_cents():
    for row in electricity_rows():
        assert Decimal("0.02") < row.price_per_kwh < Decimal("0.6"), row.id
        assert row.source
        assert row.date_earliest <= row.date_latest


def test_a_state_has_its_own_price(today):
    fact = electricity_of("US-TX", "US-TX", today)

    assert fact.estimate.low == fact.estimate.high == 0.066  # 6.60 cents, EIA Electric Power Annual 2023
    assert "industrial, 2023: 0.066 USD per kWh" in fact.evidence.what


def test_a_whole_year_goes_before_a_newer_single_month(today):
    assert electricity_of("US-OH", "US-OH", today).evidence.id == "electricity:e015"  # 2023, not April 2025


def test_a_state_with_only_a_month_uses_it(today):
    assert electricity_of("US-IN", "US-IN", today).estimate.mid == 0.0901


def test_a_state_without_a_row_takes_the_us_average(today):
    assert electricity_of("US-FL", "US-FL", today).estimate.mid == 0.0826


def test_an_unnamed_place_in_the_us_has_the_spread_of_the_states(today):
    usd = electricity_of("USA", None, today).estimate

    assert usd.low == pytest.approx(0.0600, abs=0.001)
    assert usd.high == pytest.approx(0.184, abs=0.002)


def test_an_unnamed_place_has_no_spread_where_no_state_has_a_row(today, monkeypatch):
    rows = tuple(row for row in electricity_rows() if not row.zone.startswith("US-"))
    monkeypatch.setattr("pricing.place.electricity.electricity_rows", lambda: rows)
    usd = electricity_of("USA", None, today).estimate

    assert usd.low == usd.mid == usd.high == 0.0826


def test_the_day_decides_the_year():
    assert electricity_of("USA", "USA", date(2023, 6, 1)).estimate.mid == 0.0806


@pytest.mark.parametrize(("zone", "why"), [("DEU", "no price is known for DEU"), (None, "no price is known for DEU")])
def test_a_country_without_a_row_is_a_gap(zone, why, today):
    gap = electricity_of(zone, "DEU", today)

    assert isinstance(gap, Gap)
    assert word(gap.why) == why


def test_euro_become_dollars_only_with_a_dated_rate(data_home, today):
    assert "no dated exchange rate" in word(electricity_of("FIN", "FIN", today).why)

    data_home.mkdir(parents=True)
    (data_home / "exchange_rates.csv").write_text("currency,usd_per_unit,date,source\nEUR,1.10,2026-01-01,bank\n")
    fact = electricity_of("FIN", "FIN", today)
    assert fact.estimate.mid == pytest.approx(0.089 * 1.10)
    assert "at 1.10 of 2026-01-01" in fact.evidence.what


@pytest.mark.parametrize("wrong", [-0.1, 8.26, float("nan")])
def test_a_price_in_cents_or_below_nothing_is_refused(wrong):
    with pytest.raises(UsageError, match="not a plausible price in USD per kWh"):
        given_electricity(wrong)


def test_power_may_cost_nothing_as_in_a_tariff():
    assert given_electricity(0.0).estimate.mid == 0.0


def test_a_price_at_a_stale_rate_is_marked(data_home, today):
    data_home.mkdir(parents=True)
    rates = "currency,usd_per_unit,date,source\nEUR,1.10,{day},bank\n"
    file = data_home / "exchange_rates.csv"

    file.write_text(rates.format(day="2026-11-01"), encoding="utf-8")
    assert electricity_of("EU27", "EU27", today).gap is None
    file.write_text(rates.format(day="2026-08-01"), encoding="utf-8")
    assert "EUR (2026-08-01)" in word(electricity_of("EU27", "EU27", today).gap.why)
