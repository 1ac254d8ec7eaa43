"""The figures of all ranks combined into one point: the slowest time, the largest memory, the sum of the energies."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import fields, replace

from planner.records.communication import RankFigures
from planner.records.figures import EnergyUse, PeakMemory, PowerDraw
from probes.ranks.team import Team
from probes.record.figures import Figures


def first_failure(failed: Figures | None, team: Team) -> Figures | None:
    """Return the failure of the first rank that has one, with the rank's name; None if there is none."""
    if team.size == 1:
        return failed
    for name, figures in zip(team.names, team.failures(failed), strict=True):
        if figures is not None:
            return replace(figures, reason=f"{name}: {figures.reason}")
    return None


def combined(figures: Figures, team: Team) -> Figures:
    """Return the figures of the point over all ranks; a failure is already the same on every rank."""
    if team.size == 1 or figures.status != "ok":
        return figures
    parts = team.gather(figures)
    first = parts[0]
    return replace(
        first,
        sampling=replace(first.sampling, quality=_worst([part.sampling.quality for part in parts])),
        memory=_largest([part.memory for part in parts]),
        energy=_summed_energy([part.energy for part in parts]),
        power=_summed_power([part.power for part in parts]),
        ranks=RankFigures(
            names=team.names,
            time_s=_of_all(parts, lambda part: part.ranks.time_s[0] if part.ranks.time_s else None),
            power_w=_of_all(parts, lambda part: part.power.mean_w or part.power.instant_mean_w),
            energy_j=_of_all(parts, lambda part: part.energy.j_per_iteration),
            temperature_c=_of_all(parts, lambda part: part.device_state.temperature_end_c),
            sm_clock_hz=_of_all(parts, lambda part: part.device_state.sm_clock_median_hz),
            power_limit_w=_of_all(parts, lambda part: part.device_state.power_limit_w),
            memory_bytes=_of_all(parts, lambda part: part.memory.allocated_peak_bytes),
            slowed=tuple(
                name for name, part in zip(team.names, parts, strict=True) if part.sampling.quality == "throttled"
            ),
        ),
    )


_BY_WORST = ("contended", "throttled", "drift")


def _worst(qualities: Sequence[str | None]) -> str | None:
    return next((quality for quality in _BY_WORST if quality in qualities), qualities[0])


def _of_all(parts: Sequence[Figures], figure: Callable[[Figures], float | None]) -> tuple[float, ...]:
    """Return a figure of every rank; nothing if one rank lacks it."""
    values = [figure(part) for part in parts]
    return tuple(value for value in values if value is not None) if None not in values else ()


def _largest(parts: Sequence[PeakMemory]) -> PeakMemory:
    """Return the largest value over all ranks of each figure."""
    largest = {
        field.name: max(
            (getattr(part, field.name) for part in parts if getattr(part, field.name) is not None), default=None
        )
        for field in fields(PeakMemory)
        if field.name != "source"
    }
    return replace(parts[0], **largest)


def _summed_energy(parts: Sequence[EnergyUse]) -> EnergyUse:
    """Sum the joules of all ranks; unknown if those of one rank are."""
    return replace(parts[0], j_per_iteration=_sum([part.j_per_iteration for part in parts]))


def _summed_power(parts: Sequence[PowerDraw]) -> PowerDraw:
    """Sum the watts of all ranks."""
    return PowerDraw(**{f.name: _sum([getattr(part, f.name) for part in parts]) for f in fields(PowerDraw)})


def _sum(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) if len(known) == len(values) else None
