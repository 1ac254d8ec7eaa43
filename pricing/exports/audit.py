"""Check that the figures of an estimate are consistent: sums to the cent, and ratios that a wrong unit would break.

kW for MW, Wh for kWh, cents for dollars and grams for kilograms are wrong by a factor of 100 or more. The bounds here
are narrower, so each such mistake breaks one of them. They allow everything that a question may contain: figures that
depend on a price, a grid or the service life of machines are compared with it, not with the usual value.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from planner.costs.quantity import Energy, Power
from planner.errors import InputFileError
from planner.lazy import dataclass
from planner.units import DAY_S, HOUR_S, g_from_kg, kg_from_tonnes
from pricing.exports.bill_table import VIEWS, billed_plans


@dataclass(frozen=True, slots=True, kw_only=True)
class Ratio:
    """A ratio of two figures, and the bounds that every real plan satisfies."""

    name: str
    low: float
    high: float
    unit: str


USD_PER_GPU_H = Ratio(name="cost over GPU-hours", low=0.005, high=400.0, unit="USD per GPU-hour")
"""Bounds where the document does not state the price of its hours."""
PRICED_WITHIN = 2.0
"""Largest factor between the cost of the GPUs alone and the price that the document states."""
W_PER_GPU = Ratio(name="energy over GPU-hours", low=25.0, high=15_000.0, unit="W per GPU at the meter")
G_PER_KWH = Ratio(name="carbon over energy", low=0.9, high=3000.0, unit="g CO₂e per kWh")
CLOCK = Ratio(name="GPU-hours over GPUs times days", low=0.97, high=1.03, unit="hours per hour")
MEAN = Ratio(name="mean power times days over energy", low=0.5, high=2.0, unit="MWh per MWh")
MADE = Ratio(name="embodied carbon over GPU-hours", low=1e-4, high=1.0, unit="kg CO₂e per GPU-hour")
SCORE = Ratio(name="SCI score over carbon", low=0.5, high=2.0, unit="kg per kg")
"""Its upper bound is for carbon with the embodied share, which is nearly all of it on a clean grid."""
PEAK = Ratio(name="peak power over mean power", low=1.0, high=20.0, unit="W per W")
LEAST_USD = 1.0
"""Amount below which whole cents say too little about a price."""


GPU_LINES = ("gpu_rental", "gpu_owned")
HOURLY = (*GPU_LINES, "electricity")
"""Lines that are paid per GPU-hour; fees, unused minimums and storage may be any multiple of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """An inconsistent figure."""

    where: str
    """Part of the document, for example `plans.bf16`."""
    what: str
    """The ratio, and the bounds that it violates."""


def audit(document: dict[str, Any]) -> tuple[Fault, ...]:
    """Return the inconsistent figures of an `mpplan.estimate/2` document; none for a consistent one."""
    faults = []
    try:
        billed_plans(document)
    except InputFileError as error:
        faults.append(Fault(where="cost_lines", what=str(error.message)))
    for view in VIEWS:
        for plan in document.get(view, ()):
            if plan.get("fits"):
                price = _price_used(document, plan["gpu"])
                faults += [Fault(where=f"{view}.{plan['precision']}", what=what) for what in _misfits(plan, price)]
    return tuple(faults)


def require_sound(document: dict[str, Any]) -> None:
    """Refuse a document whose figures are inconsistent.

    Raises:
        InputFileError: the first fault, and the number of others.
    """
    faults = audit(document)
    if faults:
        more = f" (and {len(faults) - 1} more)" if len(faults) > 1 else ""
        raise InputFileError(
            f"{faults[0].where}: {faults[0].what}{more}", hint="write the document again with `mpplan estimate --json`"
        )


def _mid(plan: dict[str, Any], metric: str) -> float | None:
    value = plan.get(metric)
    return None if value is None or value.get("at_least") else float(value["mid"])


def _price_used(document: dict[str, Any], gpu: str) -> float | None:
    """Return the USD per GPU-hour that the answer states; None where it states none."""
    rows = (document.get("money") or {}).get("prices") or ()
    used = next((row["usd_per_gpu_h"] for row in rows if row["gpu"] == gpu), None)
    return float(used["mid"]) if used else None


def _price_misfits(plan: dict[str, Any], gpu_h: float, cost: float, price: float | None) -> Iterator[str]:
    """Yield a fault where the cost of an hour contradicts the stated price or, without one, is implausible."""
    lines = {line["id"]: float(line["usd"]["mid"]) for line in plan.get("cost_lines") or ()}
    names = GPU_LINES if price else HOURLY
    hourly = [usd for name, usd in lines.items() if name in names]
    usd = sum(hourly) if hourly else cost
    if usd < LEAST_USD and hourly:
        return
    bounds = USD_PER_GPU_H
    if price and hourly:
        bounds = replace(bounds, low=price / PRICED_WITHIN, high=price * PRICED_WITHIN)
    yield from _outside(bounds, usd / gpu_h)


def _misfits(plan: dict[str, Any], price: float | None) -> Iterator[str]:
    gpu_h, energy_mwh, days = (_mid(plan, name) for name in ("gpu_hours", "energy_mwh", "duration_days"))
    cost, carbon_t = _mid(plan, "cost_usd"), _mid(plan, "carbon_tco2e")
    if gpu_h and cost:
        yield from _price_misfits(plan, gpu_h, cost, price)
    if gpu_h and days:
        yield from _outside(CLOCK, gpu_h * HOUR_S / (plan["gpus"] * days * DAY_S))
    if not energy_mwh:
        return
    energy = Energy.from_mwh(energy_mwh)
    if gpu_h:
        yield from _outside(W_PER_GPU, float(energy.j) / (gpu_h * HOUR_S))
    if carbon_t:
        yield from _outside(G_PER_KWH, g_from_kg(kg_from_tonnes(carbon_t)) / float(energy.kwh))
    if days:
        yield from _power_misfits(plan, energy, days)
    yield from _carbon_misfits(plan, gpu_h, carbon_t)


def _power_misfits(plan: dict[str, Any], energy: Energy, days: float) -> Iterator[str]:
    mean_mw, peak_mw = _mid(plan, "mean_power_mw"), plan.get("peak_power_mw")
    if mean_mw:
        yield from _outside(MEAN, float(Power.from_mw(mean_mw).w) * days * DAY_S / float(energy.j))
    if peak_mw:
        yield from _outside(PEAK, float(Power.from_mw(peak_mw).w) * days * DAY_S / float(energy.j))


def _carbon_misfits(plan: dict[str, Any], gpu_h: float | None, carbon_t: float | None) -> Iterator[str]:
    made_t, score_kg = _mid(plan, "embodied_tco2e"), _mid(plan, "sci_kg_per_run")
    if made_t and gpu_h:
        yield from _outside(MADE, kg_from_tonnes(made_t) / gpu_h)
    if score_kg and carbon_t and gpu_h:
        carbon_kg = kg_from_tonnes(carbon_t)
        made_kg = kg_from_tonnes(made_t) if made_t else MADE.high * gpu_h
        yield from _outside(replace(SCORE, high=SCORE.high * (1.0 + made_kg / carbon_kg)), score_kg / carbon_kg)


def _outside(ratio: Ratio, value: float) -> Iterator[str]:
    if not ratio.low <= value <= ratio.high:
        yield f"{ratio.name} is {value:.4g} {ratio.unit}, expected {ratio.low:g} to {ratio.high:g}: is a unit wrong?"
