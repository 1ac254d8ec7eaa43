"""Carbon beyond the meter's location-based figure: market-based, embodied (a range, with a switch), and the SCI score.

SCI, ISO/IEC 21031:2024 (Green-Software-Foundation/sci@29cab981): SCI = (E x I + M) per R, with E the energy in kWh, I
the location-based grid factor, M the embodied share of the hardware for the time it is held, R the functional unit;
market instruments and offsets never count.
"""

from __future__ import annotations

import csv
from dataclasses import dataclass
from functools import lru_cache

from planner.evidence import Estimate, Evidence, EvidenceKind
from planner.quantity import Energy
from planner.units import YEAR_H
from pricing.book import DATA

LOW_OVER_BOAVIZTA = 164 / 575
"""NVIDIA's own footprint of an HGX H100 board, commonly quoted as 1312 kg for 8 GPUs (not found first-hand),
over Boavizta's figure for the same GPU; assumed as the low end for every GPU."""

LIFE_YEARS = 5.0
"""Service life over which embodied carbon is spread (as in the cost of owned machines)."""

SCI_FLOP = 1e21
"""Functional unit of the second SCI score."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Embodied:
    """Carbon of making one GPU."""

    kg_co2e_per_gpu: Estimate
    evidence: Evidence


@lru_cache(maxsize=1)
def _rows() -> dict[str, dict[str, str]]:
    with (DATA / "embodied.csv").open(encoding="utf-8", newline="") as file:
        return {row["gpu"]: row for row in csv.DictReader(file)}


def embodied_of(gpu: str) -> Embodied | None:
    """The carbon of making a GPU: low from NVIDIA's figure, high from Boavizta's, mid their middle; None if unknown."""
    row = _rows().get(gpu)
    if row is None:
        return None
    high = float(row["kg_co2e"])
    low = high * LOW_OVER_BOAVIZTA
    evidence = Evidence(
        id=f"embodied:{row['id']}",
        kind=EvidenceKind.PUBLISHED,
        what=f"{high:g} kg CO2e per GPU, {row['notes']}; low end {LOW_OVER_BOAVIZTA:.3f} of it (NVIDIA's on H100)",
        source=row["source"],
        date=row["date"],
        gpu=gpu,
        used_in=("carbon_tco2e",),
    )
    return Embodied(kg_co2e_per_gpu=Estimate(low=low, mid=(low + high) / 2, high=high), evidence=evidence)


def embodied_kg(
    embodied: Embodied, gpu_h: float, *, life_years: float = LIFE_YEARS, utilisation: float = 1.0
) -> Estimate:
    """A run's share of the GPUs' embodied carbon: GPU-hours over the hours of a life that are used."""
    share = gpu_h / (life_years * YEAR_H * utilisation)
    each = embodied.kg_co2e_per_gpu
    return Estimate(low=each.low * share, mid=each.mid * share, high=each.high * share)


def location_kg(energy: Energy, grid_kg_co2e_per_kwh: float) -> float:
    """Energy at the facility's meter times the grid's factor."""
    return float(energy.kwh) * grid_kg_co2e_per_kwh


def market_kg(energy: Energy, market_kg_co2e_per_kwh: float) -> float:
    """The same with the factor of the user's contracts; always a second, labelled number."""
    return float(energy.kwh) * market_kg_co2e_per_kwh


@dataclass(frozen=True, slots=True, kw_only=True)
class SciScore:
    """Software Carbon Intensity of a training run."""

    kg_co2e_per_run: Estimate
    """R = one run."""
    kg_co2e_per_1e21_flop: Estimate | None
    """R = 10^21 model FLOP; None where the FLOP are not known."""
    energy_kwh: float
    grid_kg_co2e_per_kwh: float
    embodied_kg: Estimate


def sci_score(
    energy: Energy, grid_kg_co2e_per_kwh: float, embodied: Estimate, *, model_flop: float | None = None
) -> SciScore:
    """SCI = (E x I + M) per R, for R the run and R = 10^21 model FLOP.

    Args:
        energy: of the run, at the facility's meter.
        grid_kg_co2e_per_kwh: location-based.
        embodied: the run's share M in kg; its range becomes the range of the score.
        model_flop: of the run, without recomputation.
    """
    operation = location_kg(energy, grid_kg_co2e_per_kwh)
    run = Estimate(low=operation + embodied.low, mid=operation + embodied.mid, high=operation + embodied.high)
    per_flop = None
    if model_flop:
        units = model_flop / SCI_FLOP
        per_flop = Estimate(low=run.low / units, mid=run.mid / units, high=run.high / units)
    return SciScore(
        kg_co2e_per_run=run,
        kg_co2e_per_1e21_flop=per_flop,
        energy_kwh=float(energy.kwh),
        grid_kg_co2e_per_kwh=grid_kg_co2e_per_kwh,
        embodied_kg=embodied,
    )


def embodied_kg_per_gpu_h(embodied: Embodied, *, utilisation: float = 1.0) -> Estimate:
    """Embodied carbon of one GPU per hour that it is held; add it times GPU-hours where the switch is on."""
    return embodied_kg(embodied, 1.0, utilisation=utilisation)
