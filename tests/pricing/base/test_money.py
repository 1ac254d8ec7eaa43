"""Currencies of ISO 4217, and prices as they are kept."""

from __future__ import annotations

from decimal import Decimal

import pytest

from planner.errors import InputFileError
from planner.rows import Row
from pricing.base.money import CURRENCIES, plain, read_currency


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
