"""A point in one record of a fleet: its line, and the figures of each of the record's members."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import fields, replace

from planner.lazy import dataclass
from planner.records.communication import RankFigures
from planner.records.figures import SLOWED_DOWN_MASK, TimeStatistics
from planner.records.measurement import SEVERAL_RANKS, Measurement

_LISTS = ("time_s", "power_w", "energy_j", "temperature_c", "sm_clock_hz", "power_limit_w", "memory_bytes")
"""Figures of the ranks, in the order of their names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """One point of one record."""

    record: str
    """Name of the record."""
    point: Measurement
    """Its line."""
    ranks: RankFigures
    """Figures of each member of the record, under the names of the fleet's members. A list is empty if any member lacks
    the figure."""

    @property
    def is_quiet(self) -> bool:
        """Whether the time is undisturbed: neither contended nor with allocator retries."""
        return self.point.sampling.quality != "contended" and not self.point.memory.alloc_retries

    @property
    def slowest(self) -> str:
        """Name of the member that took longest; the name of the record if its members' times are unknown."""
        if not self.ranks.time_s:
            return self.ranks.names[0] if len(self.ranks.names) == 1 else self.record
        return max(zip(self.ranks.time_s, self.ranks.names, strict=True))[1]


def is_joint(point: Measurement) -> bool:
    """Whether the ranks of a point wait for each other, so that no time describes a single rank."""
    return point.kind in SEVERAL_RANKS and not (point.setup.parallel or "").startswith("alone")


def rank_names(points: Iterable[Measurement]) -> tuple[str, ...]:
    """Rank names in the lines of a record, in order of appearance; empty for a record of one device."""
    return tuple(dict.fromkeys(name for point in points for name in point.ranks.names))


def reading_of(record: str, point: Measurement, members: Sequence[str]) -> Reading:
    """Turn a line into a reading.

    In a record of several ranks, a line without rank names was measured by one rank and is attributed to the first.

    Args:
        record: name of the record.
        point: one of its lines.
        members: members of the record, by their names in the fleet.
    """
    if point.ranks.names:
        return Reading(record=record, point=point, ranks=_in_fleet(record, point.ranks))
    slowed = bool((point.device_state.clock_event_mask or 0) & SLOWED_DOWN_MASK)
    single = {
        "time_s": point.time.median_s,
        "power_w": point.power.mean_w,
        "energy_j": point.energy.j_per_iteration,
        "temperature_c": point.device_state.temperature_end_c,
        "sm_clock_hz": point.device_state.sm_clock_median_hz,
        "power_limit_w": point.device_state.power_limit_w,
        "memory_bytes": point.memory.allocated_peak_bytes,
    }
    lists = {name: () if value is None else (value,) for name, value in single.items()}
    name = members[0]
    return Reading(
        record=record, point=point, ranks=RankFigures(names=(name,), slowed=(name,) if slowed else (), **lists)
    )


def member_name(record: str, rank: str) -> str:
    """Name in the fleet for a rank of a record of several ranks."""
    return f"{record}: {rank}"


def _in_fleet(record: str, ranks: RankFigures) -> RankFigures:
    """Rename the ranks of a record for the fleet; lists whose length does not match the names are dropped."""
    fitting = {name: getattr(ranks, name) for name in _LISTS}
    return RankFigures(
        names=tuple(member_name(record, name) for name in ranks.names),
        slowed=tuple(member_name(record, name) for name in ranks.slowed),
        **{name: values if len(values) == len(ranks.names) else () for name, values in fitting.items()},
    )


def without(reading: Reading, left_out: Collection[str]) -> Reading | None:
    """Remove some members from a reading; None if no member is left, or if the others had waited for them.

    The point's figures are then those of the remaining ranks: the time of the slowest, and energy and power scaled by
    the ratio of the means. This applies only to points that each rank ran alone.
    """
    kept = [place for place, name in enumerate(reading.ranks.names) if name not in left_out]
    if len(kept) == len(reading.ranks.names):
        return reading
    if not kept or is_joint(reading.point):
        return None
    ranks = RankFigures(
        names=tuple(reading.ranks.names[place] for place in kept),
        slowed=tuple(name for name in reading.ranks.slowed if name not in left_out),
        **{name: tuple(values[place] for place in kept) if (values := getattr(reading.ranks, name)) else ()
           for name in _LISTS},
    )  # fmt: skip
    return Reading(record=reading.record, point=_scaled(reading, ranks), ranks=ranks)


def _scaled(reading: Reading, ranks: RankFigures) -> Measurement:
    """Scale the line of a reading to the ranks that remain."""
    point, whole = reading.point, reading.ranks
    if point.time.median_s and ranks.time_s:
        ratio = max(ranks.time_s) / point.time.median_s
        point = replace(point, time=_times(point.time, ratio))
    if point.power.mean_w and sum(whole.power_w):
        power_w = point.power.mean_w * _mean(ranks.power_w) / _mean(whole.power_w)
        point = replace(point, power=replace(point.power, mean_w=power_w))
    if point.energy.j_per_iteration and sum(whole.energy_j):
        energy_j = point.energy.j_per_iteration * _mean(ranks.energy_j) / _mean(whole.energy_j)
        point = replace(point, energy=replace(point.energy, j_per_iteration=energy_j))
    if ranks.memory_bytes:
        point = replace(point, memory=replace(point.memory, allocated_peak_bytes=max(ranks.memory_bytes)))
    return point


def _times(time: TimeStatistics, ratio: float) -> TimeStatistics:
    values = {field.name: getattr(time, field.name) for field in fields(time)}
    return TimeStatistics(**{name: None if value is None else value * ratio for name, value in values.items()})


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def together(readings: Sequence[Reading]) -> RankFigures:
    """Concatenate the members of several readings; a list is empty if a member lacks the figure."""
    lists = {name: [getattr(reading.ranks, name) for reading in readings] for name in _LISTS}
    return RankFigures(
        names=tuple(name for reading in readings for name in reading.ranks.names),
        slowed=tuple(name for reading in readings for name in reading.ranks.slowed),
        **{name: tuple(value for part in parts for value in part) if all(parts) else ()
           for name, parts in lists.items()},
    )  # fmt: skip
