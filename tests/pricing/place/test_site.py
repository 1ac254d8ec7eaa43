"""PUE, electricity and grid of a place: defaults, rows, what is given, and what cannot be."""

from __future__ import annotations

import pytest

from planner.errors import UsageError
from planner.evidence import Estimate, EvidenceKind, Gap
from pricing import site_facts
from pricing.base.fact import Fact, given
from pricing.place.site import pue_rows


def test_the_defaults_are_pue_1_25_and_the_us_averages(today):
    site = site_facts(as_of=today)

    assert site.pue == Estimate(low=1.1, mid=1.25, high=1.5)
    assert site.grid_kg_co2e_per_kwh.mid == pytest.approx(0.3835)  # Ember, USA 2024
    assert site.electricity_usd_per_kwh.mid == 0.0826  # EIA industrial average 2025
    assert {row.kind for row in site.evidence()} == {EvidenceKind.ASSUMED}
    assert site.market_kg_co2e_per_kwh is None


def test_a_region_brings_its_pue_price_and_grid(today):
    site = site_facts(region="us-east-1", provider="aws", as_of=today)

    assert site.pue.mid == 1.15
    assert site.grid_kg_co2e_per_kwh.mid == pytest.approx(0.2448)  # Virginia, eGRID 2023
    assert site.electricity_usd_per_kwh.mid == 0.0892
    assert {row.kind for row in site.evidence()} == {EvidenceKind.PUBLISHED}


def test_grid_evidence_states_scope_and_year(today):
    virginia = site_facts(region="US-VA", as_of=today).evidence()
    average = site_facts(as_of=today).evidence()

    assert any("direct emissions of power plants only" in row.what and "2023" in row.what for row in virginia)
    assert any("life cycle" in row.what and "2024" in row.what for row in average)


def test_a_zone_given_wins_over_the_region(today):
    assert site_facts(region="US-VA", grid="Finland", as_of=today).grid_kg_co2e_per_kwh.mid == pytest.approx(0.0722)


@pytest.mark.parametrize("grid", [385, 385.0, "385"])
def test_a_number_is_grams_per_kwh(grid, today):
    assert site_facts(grid=grid, as_of=today).grid_kg_co2e_per_kwh == Estimate.exactly(0.385)


def test_hyperscalers_without_a_row_take_epochs_figure(today):
    assert site_facts(provider="gcp", as_of=today).pue.mid == 1.1
    assert site_facts(provider="lambda", as_of=today).pue.mid == 1.25


def test_pue_rows_are_ordered_ratios_with_sources():
    for row in pue_rows():
        assert 1 <= row.low <= row.pue_ratio <= row.high < 2
        assert row.source


@pytest.mark.parametrize(
    ("wrong", "problem", "hint"),
    [
        ({"pue": 0.9}, "`--pue 0.9` is not possible", "at least 1"),
        ({"pue": float("nan")}, "`--pue nan` is not possible", "at least 1"),
        ({"grid": 0}, "a location-based grid factor cannot be 0", "--market-grid 0"),
        ({"grid": "0"}, "a location-based grid factor cannot be 0", "--market-grid 0"),
        ({"grid": 0.385}, "`--grid 0.385` is not a plausible factor", "0.385 kg are 385"),
        ({"grid": -5}, "`--grid -5` is not a plausible factor", "2 to 1300"),
        ({"electricity_usd_per_kwh": 8.26}, "not a plausible price", "8.26 cents are 0.0826"),
        ({"electricity_usd_per_kwh": -0.1}, "not a plausible price", "give 0 to 2"),
        ({"market_grid_g_per_kwh": -1.0}, "`--market-grid -1`", "0 to 2000"),
        ({"grid": "Atlantis"}, "no grid factor for `Atlantis`", "a country"),
    ],
)
def test_what_cannot_be_is_refused_with_what_can(wrong, problem, hint, today):
    with pytest.raises(UsageError) as caught:
        site_facts(as_of=today, **wrong)

    assert problem in caught.value.message
    assert hint in caught.value.hint


def test_a_factor_of_0_is_taken_as_market_based_beside_the_grid(today):
    site = site_facts(market_grid_g_per_kwh=0, as_of=today)

    assert site.market_kg_co2e_per_kwh == 0
    assert site.grid_kg_co2e_per_kwh.mid > 0
    assert any(row.id == "grid:market" for row in site.evidence())


def test_a_region_without_a_known_place_takes_the_us_average_and_says_so(today):
    site = site_facts(region="CULPEPER-9", as_of=today)

    assert site.grid_kg_co2e_per_kwh.mid == pytest.approx(0.3835)
    assert site.grid_gap == Gap.of("place.grid", region="CULPEPER-9")


def test_a_live_intensity_is_used_where_no_zone_is_given(today):
    live = Fact(estimate=Estimate.exactly(0.2), evidence=given("grid:live:DE", "now", "test", ()))

    assert site_facts(live_grid=live, as_of=today).grid_kg_co2e_per_kwh.mid == 0.2
    assert site_facts(live_grid=live, grid="FIN", as_of=today).grid_kg_co2e_per_kwh.mid == pytest.approx(0.0722)


def test_a_pue_of_5_is_the_largest_that_can_be(today):
    # at least 1 by definition; the worst measured rooms are below 4
    assert site_facts(pue=1.0, as_of=today).pue == Estimate.exactly(1.0)
    assert site_facts(pue=5.0, as_of=today).pue == Estimate.exactly(5.0)
    for wrong in (0.999, 5.001):
        with pytest.raises(UsageError):
            site_facts(pue=wrong, as_of=today)
