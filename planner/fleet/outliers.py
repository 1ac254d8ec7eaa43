"""Members of a fleet that are slow, hot or capped, and the cost of keeping them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from math import exp, log
from statistics import median, median_high, median_low

from planner.fleet.pace import above_median, against_median, far_above
from planner.fleet.readings import Reading, is_joint
from planner.lazy import dataclass

LEAST_SLOWER_RATIO = 1.02
"""Slowdown below which nobody would remove a member."""
USUAL_SD = 0.01
"""Usual standard deviation of the logarithm of time and clock between GPUs of one kind."""
LEAST_HOTTER_C, USUAL_SD_C = 10.0, 3.0
"""Least excess of a core temperature that matters, and its usual standard deviation between GPUs under equal load."""
LIMIT_RATIO = 0.99
"""A power limit counts as lower if it is below this share of the others'."""
SLOWED_RATIO, SLOWED_TIMES = 0.10, 3.0
"""Share of a member's points with slowdowns that is reported, and the multiple of the others' share that it exceeds."""
_AT_REST = ("support", "idle", "launch", "meter")
"""Kinds of points without a load on the device."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Why:
    """One thing that sets a member apart."""

    id: str
    """`slow`, `slow_together` (the ranks of a record, in points that they run together), `hot` or `capped`."""
    what: str
    """Description in words, with the figures."""
    value: float
    """Value of the member: time over the median, temperature in °C, power limit in W, clock over the median, or share
    of points slowed down."""
    usual: float
    """Value of the median member."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """One GPU of the fleet; in a record of several ranks, one rank."""

    name: str
    """Name of its file, with the rank in a record of several ranks."""
    record: str
    """Name of the record."""
    points: int
    """Number of points that it shares with others and at which it does not wait for other ranks."""
    pace_ratio: float | None
    """Time of a point over the median of the members, as the median over points; above 1 is slower."""
    power_w: float | None
    """Mean power, as the median over points."""
    temperature_c: float | None
    """Core temperature under load, as the median over points."""
    sm_clock_hz: float | None
    """Clock of the multiprocessors under load, as the median over points."""
    power_limit_w: float | None
    """Enforced power limit."""
    slowed_ratio: float | None
    """Share of its points under load at which heat or an external brake lowered its clock."""
    left_out: bool
    """True if the merged record is without it."""
    why: tuple[Why, ...] = ()
    """Reasons that set it apart from the others; empty if there are none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KeepingCost:
    """Additional cost of every synchronous step because some members are kept."""

    cost_ratio: float
    """Time of a step with these members over the time without them: at least 1."""
    gpus_worth: float
    """Number of GPUs whose work is lost that way: members × (1 − 1 / `cost_ratio`)."""
    gpus: int
    """Number of members in the fleet, including these."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outlier:
    """A member, or a whole record, that is far from the others."""

    name: str
    """Name of the member or the record."""
    why: tuple[Why, ...]
    cost: KeepingCost
    """Cost of keeping it while the other members stay as they are."""
    left_out: bool


def log_paces(readings: Iterable[Reading]) -> dict[str, tuple[float, int]]:
    """Log ratio of each member's time to the median member's, and its number of points, without joint points."""
    return against_median(_table(readings, "time_s", at_rest=True))


def joint_log_paces(readings: Iterable[Reading]) -> dict[str, tuple[float, int]]:
    """Log ratio of each record's time to the median record's, and its number of points, from joint points alone.

    At joint points, the ranks of a record wait for each other.
    """
    table: dict[str, dict[str, float]] = {}
    for reading in readings:
        time_s = reading.point.time.median_s
        if is_joint(reading.point) and reading.is_quiet and time_s:
            table.setdefault(reading.point.probe_id, {})[reading.record] = time_s
    return against_median(table)


def _table(readings: Iterable[Reading], figure: str, *, at_rest: bool = False) -> dict[str, dict[str, float]]:
    """A figure of the ranks by point and member, from points at which no rank waits and nothing else ran."""
    table: dict[str, dict[str, float]] = {}
    for reading in readings:
        if is_joint(reading.point) or not reading.is_quiet or (not at_rest and reading.point.kind in _AT_REST):
            continue
        for name, value in zip(reading.ranks.names, getattr(reading.ranks, figure), strict=False):
            if value > 0:
                table.setdefault(reading.point.probe_id, {})[name] = value
    return table


def _typical(table: Mapping[str, Mapping[str, float]]) -> dict[str, float]:
    """Median of each member over the points."""
    values: dict[str, list[float]] = {}
    for row in table.values():
        for name, value in row.items():
            values.setdefault(name, []).append(value)
    return {name: median(figures) for name, figures in values.items()}


def _slowed(readings: Iterable[Reading]) -> dict[str, float]:
    """Share of each member's points under load at which it was slowed down."""
    counts: dict[str, list[bool]] = {}
    for reading in readings:
        if reading.point.kind not in _AT_REST:
            for name in reading.ranks.names:
                counts.setdefault(name, []).append(name in reading.ranks.slowed)
    return {name: sum(flags) / len(flags) for name, flags in counts.items()}


def judged_members(
    names: Sequence[tuple[str, str]], readings: Sequence[Reading], left_out: Collection[str]
) -> tuple[Member, ...]:
    """Judge the members, each with the reasons that set it apart.

    Args:
        names: name of each member, with the name of its record.
        readings: all readings with a result, of all members, including those that are left out.
        left_out: names of members that are left out.
    """
    log_pace = log_paces(readings)
    temperatures, clocks = _table(readings, "temperature_c"), _table(readings, "sm_clock_hz")
    limits, slowed = _typical(_table(readings, "power_limit_w", at_rest=True)), _slowed(readings)
    why: dict[str, list[Why]] = {}
    for by_name in (_slow(log_pace), _hot(temperatures), _limited(limits), _slowed_down(slowed), _clocked(clocks)):
        for name, reason in by_name.items():
            why.setdefault(name, []).append(reason)
    power_w, temperature_c, clock_hz = (_typical(t) for t in (_table(readings, "power_w"), temperatures, clocks))
    return tuple(
        Member(
            name=name,
            record=record,
            points=log_pace[name][1] if name in log_pace else 0,
            pace_ratio=exp(log_pace[name][0]) if name in log_pace else None,
            power_w=power_w.get(name),
            temperature_c=temperature_c.get(name),
            sm_clock_hz=clock_hz.get(name),
            power_limit_w=limits.get(name),
            slowed_ratio=slowed.get(name),
            left_out=name in left_out,
            why=tuple(why.get(name, ())),
        )
        for name, record in names
    )


def _slow(log_pace: Mapping[str, tuple[float, int]]) -> dict[str, Why]:
    return {
        name: Why(
            id="slow", value=exp(log_pace[name][0]), usual=exp(log_pace[name][0] - distance),
            what=f"{exp(distance) - 1.0:.1%} slower than the median over {log_pace[name][1]} points",
        )
        for name, distance in far_above(log_pace, log(LEAST_SLOWER_RATIO), USUAL_SD).items()
    }  # fmt: skip


def _hot(table: Mapping[str, Mapping[str, float]]) -> dict[str, Why]:
    typical = _typical(table)
    return {
        name: Why(
            id="hot", value=typical[name], usual=typical[name] - distance,
            what=f"{typical[name]:.0f} °C, {distance:.0f} above the median under the same load",
        )
        for name, distance in far_above(above_median(table), LEAST_HOTTER_C, USUAL_SD_C).items()
    }  # fmt: skip


def _limited(limits: Mapping[str, float]) -> dict[str, Why]:
    """Members with a lower power limit. A limit is a setting, not a measurement, so two members are enough to judge."""
    if len(limits) < 2:
        return {}
    usual = median_high(limits.values())
    return {
        name: Why(
            id="capped", value=limit, usual=usual, what=f"power limit {limit:.0f} W, the others' is {usual:.0f} W"
        )
        for name, limit in limits.items()
        if limit < LIMIT_RATIO * usual
    }


def _slowed_down(shares: Mapping[str, float]) -> dict[str, Why]:
    """Members that the driver often slowed down. This is reported by the driver, so no spread is needed either."""
    if len(shares) < 2:
        return {}
    usual = median_low(shares.values())
    return {
        name: Why(
            id="capped", value=share, usual=usual,
            what=f"heat or an external brake lowered its clock at {share:.0%} of its points, at the median {usual:.0%}",
        )
        for name, share in shares.items()
        if share >= SLOWED_RATIO and share > SLOWED_TIMES * usual
    }  # fmt: skip


def _clocked(table: Mapping[str, Mapping[str, float]]) -> dict[str, Why]:
    negative_clocks = {name: (-value, points) for name, (value, points) in against_median(table).items()}
    return {
        name: Why(
            id="capped", value=exp(-negative_clocks[name][0]), usual=exp(distance - negative_clocks[name][0]),
            what=f"clock {1.0 - exp(-distance):.1%} lower than the median under the same load",
        )
        for name, distance in far_above(negative_clocks, log(LEAST_SLOWER_RATIO), USUAL_SD).items()
    }  # fmt: skip


def slow_records(readings: Sequence[Reading], members: Sequence[Member]) -> dict[str, Why]:
    """Records whose ranks are slow only together, with no rank slow or capped on its own: their links may be slow."""
    log_pace = joint_log_paces(readings)
    explained = {member.record for member in members if any(reason.id in ("slow", "capped") for reason in member.why)}
    return {
        name: Why(
            id="slow_together", value=exp(log_pace[name][0]), usual=exp(log_pace[name][0] - distance),
            what=f"{exp(distance) - 1.0:.1%} slower than the median at {log_pace[name][1]} points of several ranks",
        )
        for name, distance in far_above(log_pace, log(LEAST_SLOWER_RATIO), USUAL_SD).items()
        if name not in explained
    }  # fmt: skip


def keeping_cost(
    log_pace: Mapping[str, tuple[float, int]], kept: Collection[str], concerned: Collection[str], gpus: int
) -> KeepingCost:
    """Cost of keeping some members: with them, the slowest of all sets the pace; without them, the slowest other.

    Args:
        log_pace: log ratio of time to the median and number of points, by member or record.
        kept: names in the fleet.
        concerned: names of the members in question, whether they are in the fleet or not.
        gpus: number of GPUs of the fleet with these members.
    """
    other_log_paces = [log_pace[name][0] for name in kept if name in log_pace and name not in concerned]
    own_log_paces = [log_pace[name][0] for name in concerned if name in log_pace]
    ratio = exp(max(0.0, max(own_log_paces) - max(other_log_paces))) if own_log_paces and other_log_paces else 1.0
    return KeepingCost(cost_ratio=ratio, gpus_worth=gpus * (1.0 - 1.0 / ratio), gpus=gpus)
