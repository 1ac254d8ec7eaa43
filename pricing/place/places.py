"""Places by name: grid zones, countries, US states and the regions of cloud providers."""

from __future__ import annotations

from decimal import Decimal
from functools import cache, lru_cache

from planner.errors import UsageError
from planner.lazy import dataclass
from planner.rows import Row, keyed, near_names, read_rows
from pricing.base.folder import DATA
from pricing.base.listing import listed

SCOPES = {
    "lifecycle-generation": "location-based, life cycle, average of what the country generates",
    "direct-generation": "location-based, direct emissions of power plants only, average of what the state generates",
    "grid-average-google": "location-based grid average of the region as Google publishes it",
    "provincial-average-co2": "location-based, CO2 only, official provincial average including transfers",
    "production-mix": "location-based, production mix times emission factors by source",
}
"""Descriptions of what a grid factor counts. Factors of different scopes are not comparable: for the same grid, a
life-cycle factor is higher than a direct one."""

ZONE_KINDS = ("country", "us_state", "cn_province", "nordic_zone", "cloud_region", "world")
"""Kinds of zone of a grid factor."""

_STATES_ALSO_COUNTRIES = "AL AR AZ CA CO DE GA ID IL IN KY LA MA MD ME MN MO MS MT NC NE PA SC SD TN VA"
_ALSO_COUNTRIES = frozenset(_STATES_ALSO_COUNTRIES.split())
"""US state codes that are also ISO 3166-1 country codes; on their own they are ambiguous and refused."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GridRow:
    """The annual average carbon intensity of a grid."""

    zone: str
    """`USA`, `US-VA`, `CN-BJ`, `gcp:us-east1`, `SE3`, `WORLD`."""
    name: str
    """Name of the zone, for example `United States`."""
    kind: str
    """One of `ZONE_KINDS`."""
    g_co2e_per_kwh: Decimal
    year: int
    scope: str
    """A key of `SCOPES`."""
    source: str
    licence: str


@lru_cache(maxsize=1)
def _lines() -> dict[str, Row]:
    """Return the lines of `grid.csv` by zone; a question needs a dozen of them."""
    return keyed(read_rows(DATA / "grid.csv"), lambda row: row, key="zone")


def grid_rows() -> dict[str, GridRow]:
    """Return the rows of `grid.csv` by zone."""
    return {zone: grid_row(zone) for zone in _lines()}


def grid_row_if_any(zone: str) -> GridRow | None:
    """Return the row of a zone; None where `grid.csv` has none."""
    return grid_row(zone) if zone in _lines() else None


@cache
def grid_row(zone: str) -> GridRow:
    """Return the row of a zone.

    Raises:
        KeyError: `grid.csv` has no such zone.
        InputFileError: the row is wrong.
    """
    row = _lines()[zone]
    return GridRow(
        zone=row.text("zone"),
        name=row.text("name"),
        kind=row.choice("kind", ZONE_KINDS),
        g_co2e_per_kwh=row.decimal("g_co2e_per_kwh", high=2000),
        year=row.integer("year", low=2000, high=2100),
        scope=row.choice("scope", SCOPES),
        source=row.text("source"),
        licence=row.text("licence"),
    )


@lru_cache(maxsize=1)
def _region_places() -> dict[tuple[str, str], str]:
    return {
        (row.text("provider"), row.text("region").lower()): row.text("place") for row in read_rows(DATA / "regions.csv")
    }


def place_of(provider: str, region: str) -> str | None:
    """Return the country or US state of a provider's region; None where it is not known."""
    return _region_places().get((provider, region.lower()))


def provider_of(region: str) -> str | None:
    """Return the provider with a region of this name (`us-east-1`, `aws:us-east-1`); None without exactly one."""
    named, _, name = region.strip().lower().rpartition(":")
    owners = {owner for owner, known in _region_places() if known == name and named in ("", owner)}
    return owners.pop() if len(owners) == 1 else None


def country_of(place: str) -> str:
    """Return the country of a place, which is a country itself or a US state."""
    return "USA" if place.startswith("US-") else place


def same_place(first: str, second: str) -> bool:
    """Return whether two names of regions or places are the same, or one is in the country that the other names."""
    if first.strip().lower() == second.strip().lower():
        return True
    place, other = place_named(first), place_named(second)
    if place is None or other is None:
        return False
    return place == other or other == country_of(place) or place == country_of(other)


@lru_cache(maxsize=1)
def _by_name() -> dict[str, list[str]]:
    names: dict[str, list[str]] = {}
    for zone, row in _lines().items():
        is_region = row.text("kind") == "cloud_region"
        for name in {zone.lower()} if is_region else {zone.lower(), row.text("name").lower()}:
            names.setdefault(name, []).append(zone)
    for code in (zone for zone in _lines() if zone.startswith("US-") and zone[3:] not in _ALSO_COUNTRIES):
        names.setdefault(code[3:].lower(), []).append(code)
    return names


def place_named(text: str, provider: str | None = None) -> str | None:
    """Return the country or US state of a code, a name or a provider's region; None where it is unknown."""
    row = zone_named(text, provider)
    if row is None:
        return None
    return place_of("gcp", row.zone.removeprefix("gcp:")) if row.kind == "cloud_region" else row.zone


def zone_named(text: str, provider: str | None = None) -> GridRow | None:
    """Return the grid row of a name; None where the name is unknown or ambiguous.

    Args:
        text: a zone code, the name of a country, state or province, or a provider's region (`us-east-1`,
            `aws:us-east-1`). Google publishes a factor per region; a region of another provider gets the factor of its
            state or country.
        provider: the provider of the region, where the name does not contain it.
    """
    name = text.strip().lower()
    if ":" in name and not name.startswith("gcp:"):
        provider, name = name.split(":", 1)
    if provider is None or provider == "gcp":
        google = grid_row_if_any(f"gcp:{name.removeprefix('gcp:')}")
        if google is not None:
            return google
    places = {
        place for (owner, region), place in _region_places().items() if region == name and provider in (None, owner)
    }
    if places:
        return grid_row(places.pop()) if len(places) == 1 else None
    codes = _by_name().get(name, [])
    countries = [zone for zone in codes if grid_row(zone).kind == "country"]
    if len(codes) == 1:
        return grid_row(codes[0])
    same_country = len(countries) == 1 and all(grid_row(zone).kind in ("country", "nordic_zone") for zone in codes)
    return grid_row(countries[0]) if same_country else None


def require_zone(text: str, provider: str | None = None) -> GridRow:
    """Return the grid row of a name, as `zone_named` finds it.

    Raises:
        UsageError: the name is unknown or ambiguous; similar names are suggested.
    """
    row = zone_named(text, provider)
    if row is not None:
        return row
    several = _by_name().get(text.strip().lower(), [])
    two_letters = [f"US-{text.upper()}"] if grid_row_if_any(f"US-{text.upper()}") is not None else []
    if several or two_letters:
        codes = several or two_letters
        named = listed(f"{code} ({grid_row(code).name})" for code in codes)
        raise UsageError(f"`{text}` may stand for several places", hint=f"write {named}, or the country by name")
    near = near_names(text, [*_by_name(), *(region for _, region in _region_places())])
    raise UsageError(
        f"no grid factor for `{text}`",
        hint=(f"did you mean {listed(near)}? " if near else "")
        + "give a country (DEU), a US state (US-TX), a cloud region (gcp:us-east1), or a number in g/kWh",
    )
