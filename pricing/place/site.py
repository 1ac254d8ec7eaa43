"""Facts of the site where the machines run: PUE, electricity price and grid carbon, each with its source."""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from functools import lru_cache

from planner.costs.prices import SiteFacts
from planner.errors import UsageError
from planner.evidence import Estimate, Evidence, EvidenceKind, Gap
from planner.lazy import dataclass
from planner.rows import Row, read_rows
from planner.units import kg_from_g
from pricing.base.fact import Fact, given
from pricing.base.folder import DATA
from pricing.place.electricity import DEFAULT_ZONE, electricity_of, given_electricity
from pricing.place.places import SCOPES, GridRow, grid_row, place_named, require_zone

HYPERSCALERS = ("aws", "azure", "gcp", "oci")


@dataclass(frozen=True, slots=True, kw_only=True)
class PueRow:
    """A published power usage effectiveness."""

    id: str
    operator: str
    """A provider, `hyperscaler`, `survey`, or empty for the default."""
    region: str
    pue_ratio: Decimal
    low: Decimal
    high: Decimal
    date: str
    source: str


@lru_cache(maxsize=1)
def pue_rows() -> tuple[PueRow, ...]:
    """Return the rows of `pue.csv`."""
    return tuple(_pue_row(row) for row in read_rows(DATA / "pue.csv"))


def _pue_row(row: Row) -> PueRow:
    low, mid, high = (row.decimal(key, above_zero=True, high=5) for key in ("low", "pue_ratio", "high"))
    if low < 1:
        raise row.fail("low", "at least 1: a facility draws no less than its machines")
    if not low <= mid <= high:
        raise row.fail("pue_ratio", f"a number from low ({low}) to high ({high})")
    return PueRow(
        id=row.text("id"),
        operator=row.cell("operator"),
        region=row.cell("region"),
        pue_ratio=mid,
        low=low,
        high=high,
        date=row.text("date"),
        source=row.text("source"),
    )


def site_facts(
    *,
    region: str | None = None,
    provider: str | None = None,
    pue: float | None = None,
    electricity_usd_per_kwh: float | None = None,
    grid: str | float | None = None,
    as_of: date,
    market_grid_g_per_kwh: float | None = None,
    live_grid: Fact | None = None,
    electricity: Fact | None = None,
) -> SiteFacts:
    """Return PUE, electricity price and grid factor of a site: each as given, else from a row, else a default.

    The defaults are a PUE of 1.25 (1.1 to 1.5) and the US averages of the industrial price and of the grid factor.

    Args:
        region: a provider's region or a place.
        provider: the provider of the region, which also determines the PUE where a row has it.
        pue: facility power over IT power.
        electricity_usd_per_kwh: the user's own price.
        grid: location-based; a zone, country, US state or region, or a number in g CO₂e per kWh.
        as_of: the day of the electricity price; rows from after it are not used. PUE and grid factors are those of the
            one year that the tables have for a place, which their evidence states.
        market_grid_g_per_kwh: market-based factor of the user's contract, reported as a second number; 0 is allowed.
        live_grid: the current intensity (`pricing.sources.live_grid`), used where no `grid` is given.
        electricity: the price of a tariff, used where no price is given.

    Raises:
        UsageError: a value is impossible (PUE below 1, a location-based factor of 0), or a zone is unknown.
    """
    operator = provider.strip().lower() if provider else None
    place = place_named(region, operator) if region else None
    site_pue = _given_pue(pue) if pue is not None else _pue(operator, region)
    power: Fact | Gap
    if electricity_usd_per_kwh is not None:
        power = given_electricity(electricity_usd_per_kwh)
    else:
        power = electricity or electricity_of(place if region else DEFAULT_ZONE, region, as_of)
    carbon = live_grid if live_grid is not None and grid is None else _grid(grid, region, operator)
    market = None if market_grid_g_per_kwh is None else _market(market_grid_g_per_kwh)
    return SiteFacts(
        pue=site_pue.estimate,
        pue_evidence=site_pue.evidence,
        electricity_usd_per_kwh=None if isinstance(power, Gap) else power.estimate,
        electricity_evidence=None if isinstance(power, Gap) else power.evidence,
        electricity_gap=power if isinstance(power, Gap) else power.gap,
        grid_kg_co2e_per_kwh=carbon.estimate,
        grid_evidence=carbon.evidence,
        grid_gap=carbon.gap,
        market_kg_co2e_per_kwh=None if market is None else market.estimate.mid,
        market_evidence=None if market is None else market.evidence,
    )


def _market(g_per_kwh: float) -> Fact:
    if not 0 <= g_per_kwh <= 2000:
        raise UsageError(
            f"`--market-grid {g_per_kwh:g}` is not a factor in g CO₂e per kWh",
            hint="give 0 to 2000; 0 for a fully renewable contract",
        )
    what = f"market-based {g_per_kwh:g} g CO₂e per kWh, of the contracts"
    return Fact(
        estimate=Estimate.exactly(kg_from_g(g_per_kwh)),
        evidence=given("grid:market", what, "--market-grid", ("carbon_market_tco2e",)),
    )


def _given_pue(pue: float) -> Fact:
    if not 1 <= pue <= 5:
        raise UsageError(
            f"`--pue {pue:g}` is not possible",
            hint="PUE is the power of the facility over that of its machines: at least 1, usually 1.05 to 1.6",
        )
    return Fact(estimate=Estimate.exactly(pue), evidence=given("pue:given", f"PUE {pue:g}", "--pue", ("energy_mwh",)))


def _pue(operator: str | None, region: str | None) -> Fact:
    rows = pue_rows()
    keys = [(operator, region.strip().lower().rpartition(":")[2] if region else ""), (operator, "")]
    if operator in HYPERSCALERS:
        keys.append(("hyperscaler", ""))
    row = next((row for key in keys for row in rows if operator and (row.operator, row.region) == key), None)
    if row is None:
        row = next(row for row in rows if not row.operator)
    known = f"PUE {row.pue_ratio}" if row.low == row.high else f"PUE {row.pue_ratio} ({row.low} to {row.high})"
    whose = " ".join(part for part in (row.operator, row.region) if part) or "default"
    return Fact(
        estimate=Estimate(low=float(row.low), mid=float(row.pue_ratio), high=float(row.high)),
        evidence=Evidence(
            id=f"pue:{row.id}",
            kind=EvidenceKind.PUBLISHED if row.operator else EvidenceKind.ASSUMED,
            what=f"{known}, {whose}",
            source=row.source,
            date=row.date,
            used_in=("energy_mwh",),
            public=not row.operator,  # an operator is the provider that the user chose
        ),
    )


def grid_number(grid: str | float) -> float | None:
    """Return the factor given as a number, in g CO₂e per kWh; None where a zone is named."""
    try:
        return float(grid)
    except ValueError:
        return None


def _grid(grid: str | float | None, region: str | None, operator: str | None) -> Fact:
    number = grid_number(grid) if grid is not None else None
    if number is not None:
        return _given_grid(number)
    if grid is not None:
        return _from_grid_row(require_zone(str(grid)), EvidenceKind.PUBLISHED)
    if region is not None and place_named(region, operator) is not None:
        return _from_grid_row(require_zone(region, operator), EvidenceKind.PUBLISHED)
    average = _from_grid_row(grid_row(DEFAULT_ZONE), EvidenceKind.ASSUMED)
    if region is None:
        return average
    return Fact(estimate=average.estimate, evidence=average.evidence, gap=Gap.of("place.grid", region=region))


def _given_grid(g_per_kwh: float) -> Fact:
    if g_per_kwh == 0:
        raise UsageError(
            "a location-based grid factor cannot be 0",
            hint="a contract for renewable power is market-based: give it with --market-grid 0",
        )
    if not 1 <= g_per_kwh <= 2000:
        raise UsageError(
            f"`--grid {g_per_kwh:g}` is not a plausible factor in g CO₂e per kWh",
            hint="grids run from 2 to 1300 g per kWh; 0.385 kg are 385",
        )
    what = f"grid factor {g_per_kwh:g} g CO₂e per kWh, location-based"
    return Fact(
        estimate=Estimate.exactly(kg_from_g(g_per_kwh)),
        evidence=given("grid:given", what, "--grid", ("carbon_tco2e",)),
    )


def _from_grid_row(row: GridRow, kind: EvidenceKind) -> Fact:
    return Fact(
        estimate=Estimate.exactly(kg_from_g(float(row.g_co2e_per_kwh))),
        evidence=Evidence(
            id=f"grid:{row.zone}",
            kind=kind,
            what=f"{row.name}: {row.g_co2e_per_kwh} g CO₂e per kWh of {row.year}, {SCOPES[row.scope]}",
            source=row.source,
            date=str(row.year),
            used_in=("carbon_tco2e",),
            public=True,
        ),
    )
