"""Where the wall-clock time of a run went: kept steps, replayed steps, stops, checkpoints, evaluations and start-up."""

from __future__ import annotations

import numpy as np

from planner.comparison.pace import Durations, Pace, ordinary_s
from planner.lazy import dataclass
from planner.runlog.log import RunLog

PAUSES = ("stops", "checkpoint", "evaluation", "start", "other")
"""Pauses: `stops` from the last step before a restart to the first after it, `checkpoint` and `evaluation` where one
happened, `start` until the first step, and `other` without explanation."""
OUTSIDE = ("slow", "replayed", *PAUSES, "untold")
"""Time that is not a steady step: `slow`, the excess of slow steps over ordinary ones; `replayed`, steps repeated after
a restart; the pauses; and `untold`, wall-clock time that no other kind covers."""
KINDS = ("steps", *OUTSIDE)
"""All kinds of time; `steps` is the time of the kept steps at the ordinary step time for their batch."""
UNEXPLAINED_RATIO = 0.01
"""Share of the wall-clock time below which the rest counts as rounding."""
LEAST_PAUSE_RATIO = 0.5
"""Fraction of a step below which time between two lines is not a pause."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Spent:
    """Time of one kind."""

    kind: str
    """One of `KINDS`."""
    seconds: float
    count: int
    """Number of occurrences; for `steps`, the number of steps."""
    longest_s: float
    """The longest pause; the median step for `steps`, the longest step for `slow`, the total for `replayed`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeUse:
    """Where the time of a run went."""

    wall_s: float | None
    """Time from the first time of day in the log to the last; None where it has none."""
    spent: tuple[Spent, ...]
    goodput_ratio: float | None
    """Kept steps at the ordinary step time, over the wall-clock time; None where that is unknown."""

    def of(self, kind: str) -> Spent | None:
        """Return the time of a kind; None where there was none."""
        return next((spent for spent in self.spent if spent.kind == kind), None)


class _Sums:
    """Adds up pauses by kind."""

    def __init__(self) -> None:
        self.by_kind: dict[str, list[float]] = {}

    def add(self, kind: str, seconds: float) -> None:
        self.by_kind.setdefault(kind, []).append(seconds)

    def spent(self, kind: str) -> Spent | None:
        pauses = self.by_kind.get(kind)
        if not pauses:
            return None
        return Spent(kind=kind, seconds=sum(pauses), count=len(pauses), longest_s=max(pauses))


def time_use(log: RunLog, durations: Durations, pace: Pace | None) -> TimeUse:
    """Return where the time went, as far as the log tells."""
    sums = _Sums()
    if pace is None:
        return TimeUse(wall_s=_wall(log, 0.0), spent=(), goodput_ratio=None)
    median = pace.step_s.mid
    kept, replayed = _steps(log)
    counted, done_again = float(np.sum(kept)), float(np.sum(replayed))
    useful_s = float(np.sum(kept * ordinary_s(log, durations))) if np.any(durations.steady) else counted * median
    if counted == 0 and not np.any(log.steps.number):  # lines without step numbers: use the closing line
        counted, useful_s = pace.steps, pace.steps * median
    seconds = np.where(np.isnan(durations.seconds), median, durations.seconds)
    _pauses(log, durations, median, sums)
    for kind, pause in durations.pauses:
        sums.add(kind, pause)
    rows = [Spent(kind="steps", seconds=useful_s, count=round(counted), longest_s=median)]
    if pace.slow_s > 0:
        longest = float(np.max(durations.seconds[durations.steady]))
        rows.append(Spent(kind="slow", seconds=pace.slow_s, count=pace.slow_lines, longest_s=longest))
    if log.attempts > 1 and done_again > 0:
        lost_s = float(np.sum(seconds * replayed))
        rows.append(Spent(kind="replayed", seconds=lost_s, count=round(done_again), longest_s=lost_s))
    rows += [spent for kind in PAUSES if (spent := sums.spent(kind)) is not None]
    wall = _wall(log, useful_s)
    unexplained_s = 0.0 if wall is None else wall - sum(row.seconds for row in rows)
    if wall is not None and unexplained_s > UNEXPLAINED_RATIO * wall:
        rows.append(Spent(kind="untold", seconds=unexplained_s, count=1, longest_s=unexplained_s))
    goodput = None if wall is None or wall <= 0 else min(useful_s / wall, 1.0)
    return TimeUse(wall_s=wall, spent=tuple(rows), goodput_ratio=goodput)


def _wall(log: RunLog, useful_s: float) -> float | None:
    """Return the time from the first time of any line to the last; None where it does not span the steps.

    That happens where only a few warnings have a time.
    """
    if log.first_s is None or log.final_s is None or log.final_s <= log.first_s:
        return None
    wall = log.final_s - log.first_s
    return None if np.all(np.isnan(log.steps.end_s)) and wall < useful_s else wall


def _steps(log: RunLog) -> tuple[np.ndarray, np.ndarray]:
    """Return the kept steps of each line, and its steps that repeat earlier ones, `[line]` each."""
    number, count = log.steps.number.astype(np.float64), log.steps.count
    reached = np.concatenate(([0.0], np.maximum.accumulate(number)[:-1]))
    repeated = np.clip(np.minimum(number, reached) - (number - count), 0.0, count)
    return count - repeated, repeated


def _pauses(log: RunLog, durations: Durations, median: float, sums: _Sums) -> None:
    """Add up time between two lines that their steps do not account for, by the events that the log reports there."""
    end = log.steps.end_s
    if log.first_s is not None and len(end) and not np.isnan(end[0]):
        own = (median if np.isnan(durations.seconds[0]) else durations.seconds[0]) * max(log.steps.count[0], 1.0)
        started = end[0] - log.first_s - own
        if started > LEAST_PAUSE_RATIO * median:
            sums.add("start", started)
    by_line: dict[int, set[str]] = {}
    for mark in log.marks:
        by_line.setdefault(mark.before, set()).add(mark.kind)
    apart = np.diff(end)
    worked = durations.seconds[1:] * log.steps.count[1:]
    worked = np.where(np.isnan(worked), median * np.maximum(log.steps.count[1:], 1.0), worked)
    pauses, restart = apart - worked, np.diff(log.steps.attempt) != 0
    with np.errstate(invalid="ignore"):
        long = pauses > LEAST_PAUSE_RATIO * median
    if log.durations_from == "clock":  # the known part is in `durations.pauses`; the rest looks like slow steps
        long[:] = False
    for before in np.flatnonzero(~np.isnan(apart) & (restart | long)):
        pause = float(pauses[before])
        if restart[before]:
            sums.add("stops", max(pause, 0.0))
        else:
            kinds = by_line.get(int(before) + 1, set())
            sums.add(next((kind for kind in ("checkpoint", "evaluation") if kind in kinds), "other"), pause)
