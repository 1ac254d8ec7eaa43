"""Embodied carbon of GPUs: a range per GPU from published figures, spread over the hours of its service life."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

from planner.costs.prices import EmbodiedRate
from planner.evidence import Estimate, Evidence, EvidenceKind
from planner.lazy import dataclass
from planner.rows import Row, keyed, read_rows
from planner.units import YEAR_H
from pricing.base.folder import DATA

LOW_OVER_BOAVIZTA = 164 / 575
"""Low end over Boavizta's figure, for every GPU (assumed): NVIDIA's own footprint of an HGX H100 board, commonly
quoted as 1312 kg for 8 GPUs (its publication was not found), over Boavizta's figure for the same GPU."""

LIFE_YEARS = 5
"""Service life over which embodied carbon and the price of owned machines are spread where none is given."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Embodied:
    """Carbon of manufacturing one GPU."""

    kg_co2e_per_gpu: Estimate
    evidence: Evidence

    def per_gpu_h(self, life_years: float = LIFE_YEARS) -> EmbodiedRate:
        """Return the carbon of one hour: the total over all hours of the service life, used or not, as in the SCI.

        Args:
            life_years: service life.
        """
        hours, each = life_years * YEAR_H, self.kg_co2e_per_gpu
        rate = Estimate(low=each.low / hours, mid=each.mid / hours, high=each.high / hours)
        what = f"{self.evidence.what}, over {life_years:g} years"
        return EmbodiedRate(kg_co2e_per_gpu_h=rate, evidence=replace(self.evidence, what=what))


@lru_cache(maxsize=1)
def _embodied_by_gpu() -> dict[str, Embodied]:
    return keyed(read_rows(DATA / "embodied.csv"), _embodied, key="gpu")


def _embodied(row: Row) -> Embodied:
    high = row.number("kg_co2e", low=1, high=100_000)
    low = high * LOW_OVER_BOAVIZTA
    evidence = Evidence(
        id=f"embodied:{row.text('id')}",
        kind=EvidenceKind.PUBLISHED,
        what=f"{high:g} kg CO₂e per GPU, {row.text('notes')}; low end {LOW_OVER_BOAVIZTA:.3f} of it (NVIDIA's on H100)",
        source=row.text("source"),
        date=row.text("date"),
        gpu=row.text("gpu"),
        used_in=("embodied_tco2e", "sci_kg_per_run"),
        public=True,
    )
    return Embodied(kg_co2e_per_gpu=Estimate(low=low, mid=(low + high) / 2, high=high), evidence=evidence)


def embodied_of(gpu: str) -> Embodied | None:
    """Return the carbon of manufacturing a GPU: low from NVIDIA's figure, high from Boavizta's, mid halfway.

    Args:
        gpu: catalogue id.

    Returns:
        The carbon; None where it is unknown.

    Raises:
        InputFileError: a row of `embodied.csv` is wrong.
    """
    return _embodied_by_gpu().get(gpu)
