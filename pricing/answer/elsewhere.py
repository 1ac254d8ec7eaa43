"""Compare a run with the same run in other regions by its cost and its emissions."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date

from planner.costs.quantity import Energy
from planner.lazy import dataclass
from planner.units import kg_from_g
from pricing.book.current import counting_rows, is_historic, is_implausible
from pricing.book.rows import PriceBook, PriceRow
from pricing.files.exchange_rates import ExchangeRate, usd_rate
from pricing.place.places import GridRow, country_of, grid_row, grid_row_if_any, place_of, require_zone, zone_named


@dataclass(frozen=True, slots=True, kw_only=True)
class Elsewhere:
    """The same run in another place. Carbon is None where the grid factors of the two places differ in scope."""

    provider: str
    region: str
    place: str
    """Country or US state."""
    usd: float
    """GPU rental at the place's price."""
    row: PriceRow
    """The price row used."""
    saved_usd: float | None
    """Saving over the price here; negative where it costs more; None where the price here is not known."""
    kg_co2e: float | None
    """Location-based emissions of the run."""
    saved_kg: float | None
    """Saving over the emissions here; negative where it emits more."""
    scope: str
    """Scope of the place's grid factor, a key of `SCOPES`."""


def _same_scope_factor(place: str, region: str, provider: str, planned: GridRow) -> GridRow | None:
    """Return the grid factor of a place in the same scope as the one here, by region, by state or by country."""
    of_place, of_country = grid_row_if_any(place), grid_row_if_any(country_of(place))
    rows: Iterable[GridRow | None] = (zone_named(region, provider), of_place, of_country)
    return next((row for row in rows if row is not None and row.scope == planned.scope), None)


def elsewhere(
    book: PriceBook,
    rates: tuple[ExchangeRate, ...],
    *,
    gpu: str,
    gpu_h: float,
    energy: Energy,
    planned_zone: str | None,
    usd_here: float | None,
    as_of: date,
    commitment: str = "on-demand",
) -> tuple[Elsewhere, ...]:
    """Return every region with a current price of this GPU, cheapest first.

    Args:
        book: price rows; marketplaces and rows over 18 months old are left out.
        rates: exchange rates.
        gpu: catalogue id.
        gpu_h: GPU-hours of the run, assumed the same everywhere.
        energy: metered at the facility, assumed the same everywhere (in fact the PUE of places differs).
        planned_zone: zone or region for which the run is planned; None where carbon is not to be compared.
        usd_here: cost of the run's GPUs there, as in its bill; None where it is not known.
        as_of: the day whose prices are compared.
        commitment: commitment of the rows to compare.

    Raises:
        UsageError: `planned_zone` is unknown.
    """
    at = None if planned_zone is None else require_zone(planned_zone)
    asked = (
        row for row in book.rows if row.gpu == gpu and row.commitment == commitment and row.seller != "marketplace"
    )
    cheapest: dict[tuple[str, str], Elsewhere] = {}
    for row in counting_rows(asked, as_of):
        place = place_of(row.provider, row.region)
        rate = usd_rate(row.currency, as_of, rates)
        if place is None or rate is None or is_historic(row, as_of) or is_implausible(row, rate):
            continue
        usd = float(row.price_per_gpu_h * rate.usd_per_unit) * gpu_h
        factor = None if at is None else _same_scope_factor(place, row.region, row.provider, at)
        kg = None if factor is None else float(energy.kwh) * kg_from_g(float(factor.g_co2e_per_kwh))
        kg_here = None if at is None else float(energy.kwh) * kg_from_g(float(at.g_co2e_per_kwh))
        other = Elsewhere(
            provider=row.provider,
            region=row.region,
            place=place,
            usd=usd,
            row=row,
            saved_usd=None if usd_here is None else usd_here - usd,
            kg_co2e=kg,
            saved_kg=None if kg is None or kg_here is None else kg_here - kg,
            scope=factor.scope if factor is not None else grid_row(place).scope,
        )
        known = cheapest.get((row.provider, row.region))
        if known is None or other.usd < known.usd:
            cheapest[row.provider, row.region] = other
    return tuple(sorted(cheapest.values(), key=lambda place: (place.usd, place.provider, place.region)))
