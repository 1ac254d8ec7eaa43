"""Prices from votes: medians, spreads and what is doubtful about them."""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pricing import quote_gpu
from pricing.book.current import votes
from pricing.book.reading import shipped_book
from pricing.book.rows import PriceBook
from pricing.gpu_price.market import market_price, provider_price, typical_spread
from pricing.gpu_price.query import PriceQuery
from reports.text.messages import word

TODAY = date(2026, 11, 20)


def asked(today):
    return PriceQuery(gpu="h100-sxm5-80gb", provider=None, region=None, commitment="on-demand", as_of=today)


@given(cents=st.lists(st.integers(50, 2000), min_size=1, max_size=12))
def test_the_range_holds_the_median_and_stays_within_the_votes(cents, row):
    rows = [row(str(Decimal(price) / 100), id=str(at), provider=f"p{at}") for at, price in enumerate(cents)]
    price = market_price((), votes(rows, TODAY, ()), asked(TODAY)).usd_per_gpu_h

    assert price.low <= price.mid <= price.high
    if len(cents) >= 5:
        assert min(cents) / 100 <= price.low
        assert price.high <= max(cents) / 100


@given(cents=st.lists(st.integers(50, 2000), min_size=1, max_size=4))
def test_the_range_of_few_votes_holds_them_and_is_at_least_as_wide_as_is_typical(cents, row):
    rows = [row(str(Decimal(price) / 100), id=str(at), provider=f"p{at}") for at, price in enumerate(cents)]
    price = market_price((), votes(rows, TODAY, ()), asked(TODAY)).usd_per_gpu_h
    low, high = typical_spread(shipped_book(), (), "on-demand", TODAY)

    assert price.low <= min(cents) / 100
    assert price.high >= max(cents) / 100
    assert price.high / price.low >= float(high / low) * (1 - 1e-9)


def test_the_few_votes_of_a_region_are_its_range(row):
    rows = [row(price, id=price, provider=f"p{price}") for price in ("2.1", "2.2", "2.3")]
    price = market_price((), votes(rows, TODAY, ()), replace(asked(TODAY), region="Germany"))

    assert (price.usd_per_gpu_h.low, price.usd_per_gpu_h.high) == (2.1, 2.3)
    assert price.warnings == ()


def test_the_typical_spread_comes_from_gpus_with_five_providers(today, row):
    low, high = typical_spread(shipped_book(), (), "on-demand", today)

    assert float(low) == pytest.approx(0.68, abs=0.05)
    assert float(high) == pytest.approx(1.64, abs=0.1)
    assert typical_spread(PriceBook(rows=(row(),)), (), "on-demand", today) is None


def test_a_providers_price_names_its_row(today, row):
    price = provider_price(votes([row("2.5")], today, ())[0], asked(today))

    assert "cheapest row t1 of 2026-10-01" in word(price.basis)
    assert price.evidence[0].what == "acme, on-demand: 2.5 USD per GPU-hour"


def test_the_high_of_a_few_providers_is_the_highest_price_of_any_of_them(row):
    alone = (row("0.30", id="a", region="x"), row("1.70", id="b", region="y"))
    other = row("0.40", id="c", provider="b")
    many = tuple(row(f"0.3{n}", id=f"m{n}", provider=f"p{n}") for n in range(1, 5))

    for rows in (alone, (*alone, other)):
        assert market_price((), votes(rows, TODAY, ()), asked(TODAY)).usd_per_gpu_h.high == 1.7
    assert market_price((), votes(alone + many, TODAY, ()), asked(TODAY)).usd_per_gpu_h.high < 0.4


def test_spot_is_never_cheaper_at_its_dearest_than_at_the_only_provider_that_has_it(today):
    market = quote_gpu("t4", commitment="spot", as_of=today).usd_per_gpu_h
    aws = quote_gpu("t4", commitment="spot", provider="aws", as_of=today).usd_per_gpu_h

    assert market.high >= aws.high == 0.4093
