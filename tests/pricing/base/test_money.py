"""Exact amounts in ISO currencies, rounded so that lines and totals agree."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.errors import InputFileError
from planner.rows import Row
from pricing.base.money import CURRENCIES, plain, read_currency, rounded, rounded_lines, smallest_unit

AMOUNTS = st.lists(st.decimals(0, 10**9, places=7, allow_nan=False), min_size=1, max_size=12)


@given(AMOUNTS, st.sampled_from(["USD", "EUR", "JPY", "KWD"]))
def test_rounded_lines_sum_to_the_rounded_total_in_every_currency(amounts, currency):
    lines = rounded_lines(amounts, currency)

    assert sum(lines) == rounded(sum(amounts), currency)
    assert all(abs(line - amount) < smallest_unit(currency) for line, amount in zip(lines, amounts, strict=True))


@given(AMOUNTS, st.integers(-1, 1))
def test_lines_can_be_made_to_hit_a_total_rounded_elsewhere(amounts, cents):
    total = max(rounded(sum(amounts), "USD") + cents * Decimal("0.01"), Decimal(0))

    assert sum(rounded_lines(amounts, "USD", total)) == total


def test_thirds_of_a_dollar_lose_no_cent():
    assert rounded_lines([Decimal(1) / 3] * 3, "USD") == (Decimal("0.34"), Decimal("0.33"), Decimal("0.33"))


@pytest.mark.parametrize(("currency", "unit"), [("USD", "0.01"), ("JPY", "1"), ("KRW", "1"), ("KWD", "0.001")])
def test_currencies_have_their_own_smallest_unit(currency, unit):
    assert smallest_unit(currency) == Decimal(unit)


def test_only_active_iso_codes_are_currencies():
    assert read_currency(Row(file="f.csv", line=2, cells={"currency": "EUR"})) == "EUR"
    for code in ("usd", "$", "DEM", ""):
        with pytest.raises(InputFileError, match=r"f\.csv:2: currency: expected an ISO 4217 code such as USD"):
            read_currency(Row(file="f.csv", line=2, cells={"currency": code}))


def test_a_price_is_kept_to_a_hundredth_of_a_cent_without_an_exponent():
    assert str(plain(Decimal("98.32") / 8)) == "12.29"
    assert str(plain(Decimal("20.00"))) == "20"


def test_dollars_cents_and_the_euro_are_told_apart():
    assert {"USD", "EUR", "CNY", "JPY"} <= CURRENCIES
    assert "US$" not in CURRENCIES
