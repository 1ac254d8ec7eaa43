"""The step times of a log: steady steps, slow steps, and the pauses that are removed from them."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from planner.evidence import Estimate
from planner.lazy import dataclass
from planner.runlog.log import RunLog

Floats = npt.NDArray[np.float64]

SLOW_RATIO = 1.5
"""A line whose steps took more than this many times the median is slow."""
FEWEST_OF_BATCH = 3
"""Fewest lines with one batch whose median is the ordinary step time for that batch."""
FEWEST_TO_DROP = 3
"""Fewest lines of one start of the program from which its first line counts as warm-up (compilation) and is dropped."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """The step time of a run."""

    step_s: Estimate
    """5th percentile, median and 95th percentile over steady lines; if the batch grows, over those with its median."""
    mean_s: float
    """Mean over steady lines, slow ones included."""
    lines: int
    steps: float
    """Steps that these lines cover."""
    slow_lines: int
    slow_s: float
    """Time that all slow lines together took beyond the ordinary step time for their batch."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Durations:
    """Seconds per step of each line, without the pauses within it."""

    seconds: Floats
    """Step times, `[line]`; NaN where the log does not tell."""
    steady: npt.NDArray[np.bool_]
    """Whether a line is timed and not a warm-up line, `[line]`."""
    pauses: tuple[tuple[str, float], ...]
    """Kind (`checkpoint`, `evaluation`) and seconds of each pause that was subtracted."""


def durations_of(log: RunLog) -> Durations:
    """Return the seconds per step, line by line.

    The clock of a progress bar, and that of the times of day, keeps running during an evaluation or a checkpoint. The
    duration that the log states for one is subtracted from the line that contains it; where the log states none, the
    excess over an ordinary line is subtracted.
    """
    seconds = log.steps.duration_s.copy()
    pauses = _paused(log, seconds) if log.durations_from in ("bar", "clock") else []
    steady = ~np.isnan(seconds)
    for attempt in range(log.attempts):
        timed = np.flatnonzero((log.steps.attempt == attempt) & ~np.isnan(seconds))
        if len(timed) >= FEWEST_TO_DROP:
            steady[timed[0]] = False
    return Durations(seconds=seconds, steady=steady, pauses=tuple(pauses))


def _paused(log: RunLog, seconds: Floats) -> list[tuple[str, float]]:
    """Subtract pauses from the lines that contain them, changing `seconds` in place, and return the pauses by kind."""
    count = np.maximum(log.steps.count, 1.0)
    marks = [mark for mark in log.marks if mark.kind in ("checkpoint", "evaluation")]
    after = [mark for mark in marks if mark.before >= len(seconds)]
    pauses = [(mark.kind, mark.duration_s) for mark in after if mark.duration_s is not None]
    plain = ~np.isnan(seconds)
    plain[[mark.before for mark in marks if mark.before < len(seconds)]] = False
    if not np.any(plain):
        return pauses
    median = float(np.median(seconds[plain]))
    for mark in sorted(marks, key=lambda mark: mark.duration_s is None):
        line = mark.before
        if line >= len(seconds) or np.isnan(seconds[line]):
            continue
        pause = mark.duration_s
        if pause is None:
            pause = float((seconds[line] - median) * count[line]) if seconds[line] > SLOW_RATIO * median else 0.0
        if 0 < pause < seconds[line] * count[line]:
            seconds[line] -= pause / count[line]
            pauses.append((mark.kind, pause))
    return pauses


def ordinary_s(log: RunLog, durations: Durations) -> Floats:
    """Return the ordinary step time for the batch of each line: the median over steady lines with this batch, `[line]`.

    Where the log has no batch, or few lines with it, it is the median over all steady lines; NaN without steady lines.
    """
    seconds, steady, batch = durations.seconds, durations.steady, log.steps.sequences
    ordinary = np.full(len(seconds), np.median(seconds[steady]) if np.any(steady) else np.nan)
    for size in np.unique(batch[steady & ~np.isnan(batch)]):
        lines = steady & (batch == size)
        if np.sum(lines) >= FEWEST_OF_BATCH:
            ordinary[batch == size] = np.median(seconds[lines])
    return ordinary


def _of_median_batch(batch: Floats) -> npt.NDArray[np.bool_]:
    """Return the lines with the median batch, or all lines if few have it, `[line]`."""
    known = batch[~np.isnan(batch)]
    same = batch == np.median(known) if len(known) else np.zeros(len(batch), dtype=np.bool_)
    return same if np.sum(same) >= FEWEST_OF_BATCH else np.ones(len(batch), dtype=np.bool_)


def pace_of(log: RunLog, durations: Durations) -> Pace | None:
    """Return the step time; None where the log has no time."""
    seconds, count = durations.seconds[durations.steady], log.steps.count[durations.steady]
    if not len(seconds):
        if log.closing is None or not log.closing.steps >= 1:
            return None
        mean = log.closing.runtime_s / log.closing.steps
        return Pace(
            step_s=Estimate.exactly(mean), mean_s=mean, lines=1, steps=log.closing.steps, slow_lines=0, slow_s=0.0
        )
    ordinary = ordinary_s(log, durations)[durations.steady]
    alike = seconds[_of_median_batch(log.steps.sequences[durations.steady])]
    median = float(np.median(alike))
    slow = seconds > SLOW_RATIO * ordinary
    low, high = (float(value) for value in np.percentile(alike, [5, 95]))
    return Pace(
        step_s=Estimate(low=min(low, median), mid=median, high=max(high, median)),
        mean_s=float(np.average(seconds, weights=np.maximum(count, 1.0))),
        lines=len(seconds),
        steps=float(np.sum(count)),
        slow_lines=int(np.sum(slow)),
        slow_s=float(np.sum((seconds[slow] - ordinary[slow]) * count[slow])),
    )
