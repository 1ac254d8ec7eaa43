"""What `prices check` finds in a book."""

from __future__ import annotations

from datetime import date
from decimal import Decimal

from pricing.book.check import check_book
from pricing.book.reading import shipped_book
from pricing.book.rows import PriceBook
from pricing.files.exchange_rates import ExchangeRate


def findings(rows, today):
    report = check_book(PriceBook(rows=tuple(rows)), (), today)
    return [(finding.row_id, finding.is_error, finding.what) for finding in report]


def test_the_shipped_book_has_no_errors(today):
    assert not [finding for finding in check_book(shipped_book(), (), today) if finding.is_error]


def test_a_row_over_90_days_old_is_stale_and_over_18_months_historic(today, row):
    rows = [row(id="a", day="2026-08-01"), row(id="b", day="2025-01-01", provider="other")]

    assert findings(rows, today) == [
        ("a", False, "stale: 2026-08-01 is more than 90 days ago"),
        ("b", False, "stale: 2025-01-01 is more than 18 months ago"),
    ]


def test_history_may_be_old(today, row):
    assert findings([row(id="old", day="2024-01-01"), row(id="new")], today) == []


def test_a_row_from_the_future_questions_the_clock(row):
    assert findings([row(id="a")], date(2026, 1, 1)) == [
        ("a", False, "is from 2026-10-01, after 2026-01-01: is the clock right?")
    ]


def test_a_gpu_that_no_catalogue_knows_is_an_error(today, row):
    assert findings([row(id="a", gpu="h9000")], today) == [("a", True, "`h9000` is not in the GPU catalogue")]


def test_spot_above_on_demand_of_the_same_thing_is_an_error(today, row):
    rows = [row("2", id="a", region="x"), row("3", id="b", region="x", commitment="spot"),
            row("3", id="c", region="y", commitment="spot")]  # fmt: skip

    assert findings(rows, today) == [("b", True, "the spot price 3 is above the on-demand price 2")]


def test_two_prices_of_one_offer_on_one_day_are_an_error(today, row):
    rows = [row("2.10", id="a"), row("2.1", id="b"), row("4.1", id="c"), row("4.1", id="d", region="x")]

    assert findings(rows, today) == [
        ("c", True, "4.1 USD, but row a has 2.10 for the same offer on the same days: remove one of the two")
    ]


def test_a_price_of_a_whole_server_stands_out(today, row):
    rows = [row(price, id=f"r{at}", provider=f"p{at}") for at, price in enumerate(("2.1", "2.5", "3.0", "27.52"))]

    assert findings(rows, today) == [
        ("r3", False, "27.52 USD, against a median of 2.75 for h100-sxm5-80gb, on-demand: is it per instance?")
    ]


def test_a_currency_without_a_rate_is_reported(today, row):
    assert findings([row(id="a", currency="EUR")], today) == [
        ("a", False, "not used: `exchange_rates.csv` of your data folder has no rate of EUR on or before 2026-11-20")
    ]


def test_a_price_that_is_not_plausible_in_dollars_is_an_error_said_once(today, row):
    rows = [row(price, id=f"r{at}", provider=f"p{at}") for at, price in enumerate(("2.1", "2.5", "3.0"))]
    rows.append(row("60000", id="yen", provider="osaka", currency="JPY"))
    rates = (ExchangeRate(currency="JPY", usd_per_unit=Decimal("0.0065"), date=date(2026, 10, 1), source="bank"),)

    [finding] = check_book(PriceBook(rows=tuple(rows)), rates, today)

    assert (finding.row_id, finding.is_error) == ("yen", True)
    assert finding.what.startswith("60000 JPY are 390.00 USD per GPU-hour at 0.0065 of 2026-10-01, more than 200: ")
