"""Another region: cheaper or cleaner, compared like with like."""

from __future__ import annotations

from datetime import date
from decimal import Decimal

import pytest

from planner.costs.quantity import Energy
from planner.errors import UsageError
from pricing.answer.elsewhere import elsewhere
from pricing.book.reading import shipped_book
from pricing.book.rows import PriceBook
from pricing.files.exchange_rates import ExchangeRate

H100 = "h100-sxm5-80gb"


def options(today, book=None, planned_zone="US-VA", **changes):
    asked = {"gpu": H100, "gpu_h": 100_000.0, "energy": Energy.from_mwh(100.0), "usd_here": 688_000.0}
    return elsewhere(book or shipped_book(), (), planned_zone=planned_zone, as_of=today, **(asked | changes))


def test_places_are_listed_cheapest_first_with_the_row_behind_them(today):
    places = options(today)

    assert (places[0].provider, places[0].region, places[0].row.id) == ("verda", "FIN-02", "p085")
    assert places[0].saved_usd == pytest.approx((6.88 - 2.29) * 100_000)
    assert [place.usd for place in places] == sorted(place.usd for place in places)


def test_only_factors_of_the_same_scope_are_compared(today):
    places = {place.region: place for place in options(today)}

    ohio = places["us-east-2"]  # a US state, as Virginia: both direct emissions
    assert ohio.saved_kg == pytest.approx(100_000 * (0.2448 - 0.4846))
    assert places["FIN-02"].kg_co2e is None  # life cycle against direct


def test_from_a_country_countries_are_compared(today):
    places = {place.region: place for place in options(today, planned_zone="USA")}

    assert places["FIN-02"].saved_kg == pytest.approx(100_000 * (0.3835 - 0.0722))
    assert places["us-east-1"].saved_kg == 0.0


def test_from_a_country_the_cleanest_place_of_the_book_is_sweden(today):
    comparable = [place for place in options(today, planned_zone="USA") if place.kg_co2e is not None]

    assert min(comparable, key=lambda place: place.kg_co2e).place == "SWE"  # AWS eu-north-1


def test_carbon_stays_unknown_where_the_scopes_differ(today, row):
    [place] = options(today, PriceBook(rows=(row(provider="verda", region="FIN-02"),)))

    assert (place.kg_co2e, place.saved_kg) == (None, None)


def test_without_a_price_here_nothing_is_saved_or_lost(today):
    assert {place.saved_usd for place in options(today, usd_here=None)} == {None}


def test_an_unknown_place_is_refused(today):
    with pytest.raises(UsageError, match="no grid factor for `Atlantis`"):
        options(today, planned_zone="Atlantis")


def test_a_price_that_is_not_plausible_in_dollars_is_no_place(today, row):
    rates = (ExchangeRate(currency="JPY", usd_per_unit=Decimal("0.0065"), date=date(2026, 10, 1), source="bank"),)
    dear, usual = (row(price, provider="aws", region="ap-northeast-1", currency="JPY") for price in ("60000", "400"))
    asked = {"gpu": H100, "gpu_h": 1.0, "energy": Energy.from_mwh(1.0), "planned_zone": None, "usd_here": 5.0}

    def usd(row):
        return [place.usd for place in elsewhere(PriceBook(rows=(row,)), rates, as_of=today, **asked)]

    assert (usd(dear), usd(usual)) == ([], [pytest.approx(2.6)])
