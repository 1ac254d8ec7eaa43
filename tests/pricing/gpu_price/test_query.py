"""Questions to the book: words for commitments, and which rows answer."""

from __future__ import annotations

import pytest

from planner.errors import UsageError
from pricing.book.rows import PriceBook
from pricing.gpu_price.query import PriceQuery, check_names, check_place, parse_commitment, selected_rows


def query(**changes):
    asked = {"gpu": "h100-sxm5-80gb", "provider": None, "region": None, "commitment": "on-demand"}
    return PriceQuery(**(asked | changes))


@pytest.mark.parametrize(
    ("word", "meant"), [("ondemand", "on-demand"), ("On-Demand", "on-demand"), ("3-year", "3y"), ("spot", "spot")]
)
def test_commitments_are_read_as_people_write_them(word, meant):
    assert parse_commitment(word) == meant


def test_a_marketplace_row_answers_only_where_it_is_named(today, row):
    book = PriceBook(rows=(row(id="a"), row(id="b", provider="bazaar", seller="marketplace")))

    assert [row.id for row in selected_rows(book, query(as_of=today))] == ["a"]
    assert [row.id for row in selected_rows(book, query(as_of=today, provider="bazaar"))] == ["b"]


def test_a_region_is_matched_whatever_its_case(today, row):
    book = PriceBook(rows=(row(id="a", region="FIN-02"), row(id="b", region="us")))

    assert [row.id for row in selected_rows(book, query(as_of=today, region="fin-02"))] == ["a"]


def test_a_known_provider_and_region_pass(today):
    check_names(query(as_of=today, provider="aws", region="us-east-1"))


def test_an_unknown_region_of_a_provider_offers_that_providers(today):
    with pytest.raises(UsageError) as caught:
        check_names(query(as_of=today, provider="verda", region="FIN-9"))

    assert "FIN-0" in caught.value.hint
    assert "us-east-1" not in caught.value.hint


@pytest.mark.parametrize(
    "region", ["CANADA-1", "canada-1", "FIN-01", "europe-west4", "eastus", "gcp:us-east1", "azure:eastus"]
)
def test_the_region_of_another_provider_is_refused_and_names_those_of_the_one_asked(today, region):
    with pytest.raises(UsageError) as caught:
        check_names(query(as_of=today, provider="aws", region=region))

    assert f"no prices in a region `{region}` of aws" in caught.value.message
    assert "-1" in caught.value.hint


@pytest.mark.parametrize(
    ("provider", "region"),
    [
        ("aws", "us-east-1"),
        ("aws", "aws:us-east-1"),
        ("aws", "US-EAST-1"),
        ("aws", "US-VA"),
        ("aws", "Virginia"),
        ("aws", "Germany"),
        ("gcp", "gcp:us-east4"),
        ("gcp", "us-central1"),
        ("nebius", "us-central1"),
        ("azure", "eastus"),
        ("hyperstack", "CANADA-1"),
        (None, "CANADA-1"),
        (None, "aws:us-east-1"),
    ],
)
def test_a_provider_may_be_asked_for_its_own_regions_and_for_places(today, provider, region):
    check_names(query(as_of=today, provider=provider, region=region))


def test_a_provider_without_regions_says_so(today):
    with pytest.raises(UsageError) as caught:
        check_names(query(as_of=today, provider="oblivus", region="us-east-1"))

    assert caught.value.hint == "its prices name no region: leave out --region"


def test_an_unknown_provider_is_refused_even_where_no_region_is_asked_for(today):
    with pytest.raises(UsageError):
        check_names(query(as_of=today, provider="verdaa"))


def test_an_unknown_region_is_refused_even_where_no_provider_is_asked_for(today):
    with pytest.raises(UsageError):
        check_names(query(as_of=today, region="us-east-99"))
    check_names(query(as_of=today))


@pytest.mark.parametrize(
    ("region", "provider"),
    [("us-east-1", None), ("Norway", None), ("culpeper-usa", None), ("eu-west-3", "aws"), ("us-east-1", "lambda"),
     ("US-EAST-04", "coreweave")],
)  # fmt: skip
def test_the_place_of_a_price_of_one_s_own_is_any_that_is_known_or_cannot_be_checked(region, provider):
    check_place(region, provider)


@pytest.mark.parametrize(
    ("region", "provider", "problem", "hint"),
    [
        ("us-esat-1", None, "no region or place `us-esat-1` is known", "us-east-1"),
        ("eastus", "aws", "no region or place `eastus` of aws is known", "us-east-1"),
        ("nowhere", None, "no region or place `nowhere` is known", "--grid"),
    ],
)
def test_the_place_of_a_price_of_one_s_own_is_not_a_typing_mistake(region, provider, problem, hint):
    with pytest.raises(UsageError, match=problem) as caught:
        check_place(region, provider)

    assert hint in caught.value.hint
