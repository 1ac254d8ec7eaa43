"""Places: what a name stands for, and that grid factors say their scope and year."""

from __future__ import annotations

import pytest

from planner.errors import UsageError
from pricing.place.places import (
    SCOPES,
    grid_row,
    grid_row_if_any,
    grid_rows,
    place_named,
    place_of,
    require_zone,
    same_place,
    zone_named,
)


def test_every_grid_row_has_scope_year_source_licence_and_a_plausible_factor():
    for zone, row in grid_rows().items():
        assert row.scope in SCOPES, zone
        assert 2009 <= row.year <= 2026, zone
        assert row.source, zone
        assert row.licence, zone
        assert 1 <= row.g_co2e_per_kwh <= 1400, zone


def test_no_factor_whose_licence_is_open_is_shipped():
    assert len(grid_rows()) == 348
    assert not any("Electricity Maps values" in row.source for row in grid_rows().values())


@pytest.mark.parametrize(
    ("name", "zone"),
    [
        ("USA", "USA"),
        ("germany", "DEU"),
        ("US-TX", "US-TX"),
        ("texas", "US-TX"),
        ("tx", "US-TX"),
        ("us-east-1", "US-VA"),
        ("aws:us-west-2", "US-OR"),
        ("eastus", "US-VA"),
        ("us-east4", "gcp:us-east4"),
        ("gcp:europe-north1", "gcp:europe-north1"),
        ("FIN-02", "FIN"),
        ("Finland", "FIN"),
        ("SE3", "SE3"),
        ("CN-BJ", "CN-BJ"),
        ("world", "WORLD"),
    ],
)
def test_a_place_is_found_by_code_name_or_region(name, zone):
    assert require_zone(name).zone == zone


@pytest.mark.parametrize(
    ("name", "hint"), [("Georgia", "GEO (Georgia), US-GA (Georgia)"), ("VA", "US-VA"), ("DE", "US-DE")]
)
def test_a_name_that_stands_for_several_places_is_refused_with_their_codes(name, hint):
    with pytest.raises(UsageError) as caught:
        require_zone(name)

    assert "several places" in caught.value.message
    assert hint in caught.value.hint


def test_an_unknown_place_offers_near_names():
    with pytest.raises(UsageError) as caught:
        require_zone("Germny")

    assert "germany" in caught.value.hint
    assert zone_named("Germny") is None


def test_regions_lie_in_places():
    assert place_of("aws", "us-east-2") == "US-OH"
    assert place_of("aws", "nowhere-1") is None
    assert place_named("gcp:us-west1") == "US-OR"
    assert place_named("US-1") == "USA"  # Hyperstack's name of a region


def test_a_region_name_of_two_providers_in_two_places_needs_the_provider():
    assert zone_named("me-west1", "nebius").zone == "ISR"
    assert zone_named("me-west1", "gcp").zone == "gcp:me-west1"


@pytest.mark.parametrize(
    ("first", "second", "same"),
    [
        ("us-east-1", "US-EAST-1", True),
        ("us-east-1", "eastus", True),  # both in Virginia
        ("us-east-1", "USA", True),
        ("Germany", "eu-central-1", True),
        ("us-east-1", "us-west-2", False),
        ("US-VA", "DEU", False),
        ("dc-7", "DC-7", True),
        ("dc-7", "US-VA", False),
    ],
)
def test_places_are_the_same_by_name_or_if_one_contains_the_other(first, second, same):
    assert same_place(first, second) is same
    assert same_place(second, first) is same


def test_a_zone_without_a_factor_has_no_row():
    assert grid_row_if_any("DEU") is grid_row("DEU") is grid_rows()["DEU"]
    assert grid_row_if_any("Germany") is None  # a name, not a zone
    with pytest.raises(KeyError):
        grid_row("Germany")
