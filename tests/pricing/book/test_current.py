"""Which rows count on a day, and how providers vote."""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from decimal import Decimal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pricing.book.current import counting_rows, implausible, is_historic, quantile, votes, without_historic
from pricing.book.reading import shipped_book
from pricing.files.exchange_rates import ExchangeRate


def ids(rows):
    return {row.id for row in rows}


def test_a_newer_row_of_the_same_place_replaces_an_older_one(today, row):
    rows = [row(id="old", day="2026-09-01", region="us"), row(id="new", day="2026-09-15", region="us")]

    assert ids(counting_rows(rows, today)) == {"new"}


def test_a_newer_row_of_another_region_does_not_while_they_are_close_in_time(today, row):
    rows = [row(id="eu", day="2026-09-01", region="eu"), row(id="us", day="2026-09-15", region="us")]

    assert ids(counting_rows(rows, today)) == {"eu", "us"}


def test_a_provider_looked_at_again_has_no_claim_to_prices_90_days_older(today, row):
    rows = [row(id="eu", day="2026-02-01", region="eu"), row(id="us", day="2026-09-15", region="us")]

    assert ids(counting_rows(rows, today)) == {"us"}


@pytest.mark.parametrize(
    ("seen_again", "counting"),
    [("2026-05-01", {"eu", "us"}), ("2026-05-02", {"us"})],  # 90 and 91 days after 2026-01-31
)
def test_another_region_replaces_a_row_from_the_91st_day_on(today, row, seen_again, counting):
    rows = [row(id="eu", day="2026-01-31", region="eu"), row(id="us", day=seen_again, region="us")]

    assert ids(counting_rows(rows, today)) == counting


@pytest.mark.parametrize(("seen_again", "counting"), [("2026-09-01", {"old", "new"}), ("2026-09-02", {"new"})])
def test_the_same_place_replaces_a_row_from_the_next_day_on(today, row, seen_again, counting):
    rows = [row(id="old", day="2026-09-01", region="us"), row(id="new", day=seen_again, region="us")]

    assert ids(counting_rows(rows, today)) == counting


def test_the_newest_possible_day_of_a_vague_row_is_what_a_newer_row_must_pass(today, row):
    vague = row(id="vague", date_earliest=date(2026, 1, 1), date_latest=date(2026, 6, 30), region="us")

    assert ids(counting_rows([vague, row(id="new", day="2026-06-30", region="us")], today)) == {"vague", "new"}
    assert ids(counting_rows([vague, row(id="new", day="2026-07-01", region="us")], today)) == {"new"}


def test_a_row_without_a_region_stands_for_any(today, row):
    rows = [row(id="old", day="2026-09-01"), row(id="new", day="2026-09-15", region="us")]

    assert ids(counting_rows(rows, today)) == {"new"}


def test_rows_whose_days_may_overlap_both_count(today, row):
    rows = [row(id="vague", date_earliest=date(2026, 1, 1), date_latest=date(2026, 12, 31)), row(id="sure")]

    assert ids(counting_rows(rows, today)) == {"vague", "sure"}


def test_other_providers_gpus_and_commitments_replace_nothing(today, row):
    old = row(id="old", day="2025-01-01")
    rows = [old, row(id="a", provider="b"), row(id="c", gpu="l4"), row(id="d", commitment="spot")]

    assert "old" in ids(counting_rows(rows, today))


def test_a_row_from_after_the_day_is_not_known_yet(row):
    rows = [row(id="then", day="2024-01-01"), row(id="later", day="2026-09-15")]

    assert ids(counting_rows(rows, date(2024, 6, 1))) == {"then"}


def test_a_row_is_known_from_its_own_day_on(row):
    rows = [row(id="then", day="2026-09-01"), row(id="now", day="2026-09-15")]

    assert ids(counting_rows(rows, date(2026, 9, 14))) == {"then"}
    assert ids(counting_rows(rows, date(2026, 9, 15))) == {"now"}


def test_an_interval_is_known_from_its_first_day_on(row):
    year = row(id="year", date_earliest=date(2026, 1, 1), date_latest=date(2026, 12, 31))

    assert counting_rows([year], date(2025, 12, 31)) == ()
    assert counting_rows([year], date(2026, 1, 1)) == (year,)


@pytest.mark.parametrize(
    ("day", "historic"),
    [("2025-05-22", False), ("2025-05-21", False), ("2025-05-20", True)],  # 547, 548 and 549 days before 2026-11-20
)
def test_a_row_is_historic_when_its_newest_day_is_more_than_548_days_ago(today, row, day, historic):
    assert today == date(2026, 11, 20)
    assert is_historic(row(day=day), today) is historic
    vague = row(date_earliest=date(2024, 1, 1), date_latest=date.fromisoformat(day))
    assert is_historic(vague, today) is historic


@pytest.mark.parametrize(("day", "kept"), [("2025-05-21", {"old", "new"}), ("2025-05-20", {"new"})])
def test_a_historic_row_drops_out_on_the_549th_day_where_a_newer_one_is_left(today, row, day, kept):
    assert ids(without_historic((row(id="old", day=day), row(id="new")), today)) == kept


def test_historic_rows_count_only_where_there_are_no_others(today, row):
    old, new = row(id="old", day="2025-03-03", provider="x"), row(id="new")

    assert is_historic(old, today)
    assert ids(without_historic((old, new), today)) == {"new"}
    assert ids(without_historic((old,), today)) == {"old"}


def test_each_provider_votes_once_with_its_cheapest_row(today, row):
    rows = [row("3", id="a", region="x"), row("2", id="b", region="y"), row("9", id="c", provider="other")]

    ballot = votes(rows, today, ())

    assert [(vote.row.id, vote.usd_per_gpu_h) for vote in ballot] == [("b", Decimal(2)), ("c", Decimal(9))]
    assert ballot[0].highest_usd_per_gpu_h == 3


def test_a_currency_needs_a_dated_rate_on_or_before_the_day(today, row):
    euro = row("2", currency="EUR")
    rates = (
        ExchangeRate(currency="EUR", usd_per_unit=Decimal("1.10"), date=date(2026, 10, 1), source="bank"),
        ExchangeRate(currency="EUR", usd_per_unit=Decimal("1.20"), date=date(2026, 12, 1), source="bank"),
    )

    assert votes([euro], today, ()) == ()
    assert votes([euro], today, rates)[0].usd_per_gpu_h == Decimal("2.20")


@given(st.lists(st.decimals(0, 1000, places=3), min_size=1, max_size=30), st.integers(0, 100))
def test_quantiles_are_numpys(prices, percent):
    ordered = tuple(sorted(prices))

    expected = np.percentile([float(price) for price in ordered], percent)
    assert float(quantile(ordered, Decimal(percent) / 100)) == pytest.approx(expected, rel=1e-9, abs=1e-9)


def test_a_hundred_thousand_rows_are_sorted_out_in_one_pass(today, row):
    rows = [row(id=str(at), region=f"r{at % 997}", day=f"2026-0{1 + at % 9}-01") for at in range(100_000)]

    counting = counting_rows(rows, today)

    assert {row.date_latest for row in counting} <= {date(2026, month, 1) for month in range(6, 10)}
    assert len(counting) < len(rows)


def yen(usd_per_unit="0.0065"):
    return (ExchangeRate(currency="JPY", usd_per_unit=Decimal(usd_per_unit), date=date(2026, 10, 1), source="bank"),)


def test_a_price_that_is_not_plausible_in_dollars_has_no_vote(today, row):
    dear = row("60000", id="dear", provider="osaka", currency="JPY")  # 390 USD
    rows = (dear, row("400", id="usual", provider="tokyo", currency="JPY"))

    assert [vote.row.id for vote in votes(rows, today, yen())] == ["usual"]
    assert [(row.id, rate.currency) for row, rate in implausible(rows, today, yen())] == [("dear", "JPY")]
    assert {row.id for row, _ in implausible(rows, today, yen("154"))} == {"dear", "usual"}  # JPY per USD by mistake
    assert implausible(rows, today, ()) == ()


def test_a_newer_price_replaces_a_shipped_one_of_which_only_the_year_is_known(today):
    old = next(row for row in shipped_book().rows if row.id == "p066")  # Lambda's H100 of 2026
    new = replace(old, id="new", price_per_gpu_h=Decimal("4.99"), date_earliest=today, date_latest=today)

    assert ids(counting_rows([old, new], today)) == {"new"}
