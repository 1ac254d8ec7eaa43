"""How fast the steps of a log were: steady, slow, and what of each was spent on what."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from planner.evidence import Estimate
from planner.runlog.log import Marked, RunLog

Floats = npt.NDArray[np.float64]

SLOW_RATIO = 1.5
"""A line whose steps took this many times the median is slow."""
FEWEST_TO_DROP = 3
"""Lines of one start of the program from which on its first, which compiles and warms up, counts as starting."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """The time of a step."""

    step_s: Estimate
    """5th percentile, median and 95th percentile over steady lines."""
    mean_s: float
    """Mean over steady lines, slow ones among them."""
    lines: int
    steps: float
    """Steps that these lines cover."""
    slow_lines: int
    slow_s: float
    """Time that slow lines took beyond the median, all of them together."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Durations:
    """Seconds per step of each line, without the pauses that stand inside."""

    seconds: Floats
    """`[line]`; NaN where the log does not say."""
    steady: npt.NDArray[np.bool_]
    """Whether a line is timed and none that warms up, `[line]`."""
    pauses: tuple[tuple[str, float], ...]
    """Kind (`checkpoint`, `evaluation`) and seconds of what was taken off."""


def durations_of(log: RunLog) -> Durations:
    """Seconds per step, line by line.

    The clock of a bar, and that of the times of day, runs on during an evaluation or a checkpoint. What the log says
    one took is taken off the line that holds it; where it does not say, what exceeds an ordinary line.
    """
    seconds, count = log.steps.duration_s.copy(), np.maximum(log.steps.count, 1.0)
    pauses: list[tuple[str, float]] = []
    if log.durations_from in ("bar", "clock") and np.any(~np.isnan(seconds)):
        held: dict[int, list[Marked]] = {}
        for mark in log.marks:
            if mark.kind in ("checkpoint", "evaluation") and mark.before < len(seconds):
                held.setdefault(mark.before, []).append(mark)
            elif mark.kind in ("checkpoint", "evaluation") and mark.duration_s is not None:  # after the last line
                pauses.append((mark.kind, mark.duration_s))
        plain = [line for line in range(len(seconds)) if line not in held]
        of = seconds[plain] if plain and np.any(~np.isnan(seconds[plain])) else seconds
        median = float(np.nanmedian(of))
        for line, marks in held.items():
            for mark in sorted(marks, key=lambda mark: mark.duration_s is None):
                pause = mark.duration_s
                if pause is None:
                    pause = (seconds[line] - median) * count[line] if seconds[line] > SLOW_RATIO * median else 0.0
                if pause > 0 and seconds[line] - pause / count[line] > 0:
                    seconds[line] -= pause / count[line]
                    pauses.append((mark.kind, float(pause)))
    steady = ~np.isnan(seconds)
    for attempt in range(log.attempts):
        timed = np.flatnonzero((log.steps.attempt == attempt) & ~np.isnan(seconds))
        if len(timed) >= FEWEST_TO_DROP:
            steady[timed[0]] = False
    return Durations(seconds=seconds, steady=steady, pauses=tuple(pauses))


def pace_of(log: RunLog, durations: Durations) -> Pace | None:
    """The time of a step; None where the log has no time."""
    seconds, count = durations.seconds[durations.steady], log.steps.count[durations.steady]
    if not len(seconds):
        if log.closing is None or not log.closing.steps >= 1:
            return None
        mean = log.closing.runtime_s / log.closing.steps
        return Pace(
            step_s=Estimate.exactly(mean), mean_s=mean, lines=1, steps=log.closing.steps, slow_lines=0, slow_s=0.0
        )
    median = float(np.median(seconds))
    slow = seconds > SLOW_RATIO * median
    low, high = (float(value) for value in np.percentile(seconds, [5, 95]))
    return Pace(
        step_s=Estimate(low=min(low, median), mid=median, high=max(high, median)),
        mean_s=float(np.average(seconds, weights=np.maximum(count, 1.0))),
        lines=len(seconds),
        steps=float(np.sum(count)),
        slow_lines=int(np.sum(slow)),
        slow_s=float(np.sum((seconds[slow] - median) * count[slow])),
    )
