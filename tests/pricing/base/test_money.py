"""Exact amounts in ISO currencies, rounded so that lines and totals agree."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pricing.base.money import CURRENCIES, parse_amount, plain, rounded, rounded_lines, smallest_unit

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


@pytest.mark.parametrize(
    ("text", "value"), [("2.10", "2.10"), (" 2,10 ", "2.10"), ("0.0892", "0.0892"), ("1e-2", "0.01")]
)
def test_amounts_are_read_exactly_with_point_or_comma(text, value):
    assert parse_amount(text) == Decimal(value)


@pytest.mark.parametrize("text", ["", "free", "1,234.50", "1,2,3", "nan", "inf"])
def test_what_is_no_plain_number_is_no_amount(text):
    assert parse_amount(text) is None


def test_a_price_is_kept_to_a_hundredth_of_a_cent_without_an_exponent():
    assert str(plain(Decimal("98.32") / 8)) == "12.29"
    assert str(plain(Decimal("20.00"))) == "20"


def test_dollars_cents_and_the_euro_are_told_apart():
    assert {"USD", "EUR", "CNY", "JPY"} <= CURRENCIES
    assert "US$" not in CURRENCIES
