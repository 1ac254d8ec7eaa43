"""Power that a tool sampled while steps ran, and the energy of a step from the samples between first and last step."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

import numpy as np
import numpy.typing as npt

from planner.errors import InputFileError, UsageError
from planner.imported.reading import ImportContext, ImportedPoint, Training, statistics_of
from planner.imported.source import SourceFile
from planner.imported.steps.log import StepLog
from planner.lazy import dataclass
from planner.records.communication import Communication
from planner.records.figures import EnergyUse, PowerDraw, Sampling
from planner.records.work import RunSetup, WorkShape
from planner.runlog.moments import Clock

Floats = npt.NDArray[np.float64]

METERED_SD = 0.10
"""Relative standard deviation of a mean power from one driver field. On A100 and H100, the field covers a quarter of
the time (arXiv 2312.02741). Power that a probe reads from a single source has the same uncertainty
(`planner.measured.layers.power`)."""
UNTIMED_SD = 0.20
"""Relative standard deviation of a mean power if its samples cannot be aligned with the steps, so that start-up and
pauses count as training."""
STEP_SD = 0.02
"""Relative standard deviation of the time of a step: repeated runs of one configuration differ by a few percent."""
FEWEST_SAMPLES = 5
"""Fewest samples of each GPU within the steps."""

BOARD = "power of the board as the driver reads it: the host, fans and power supplies are not included"
DRIVER_FIELD = "the driver's power field covers only part of the time, on A100 and H100 about a quarter"
NO_TIMES = "the times of steps and power could not be matched: start-up and pauses count as training"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PowerLog:
    """Samples of the power of one or more GPUs."""

    watts: Floats
    """Power of each sample, `[sample]`."""
    gpu: npt.NDArray[np.intp]
    """Number of the GPU, counted from 0 in the order of appearance, `[sample]`."""
    clock: Clock | None
    """Times of the samples; None if the log has no times."""
    field: str
    """`instant`, `average` (over a second) or `counter` (differences of an energy counter); empty if unknown."""

    @property
    def gpus(self) -> int:
        """Number of GPUs that were metered."""
        return int(self.gpu.max()) + 1

    def period_s(self) -> float | None:
        """Median time between two samples of a GPU; None if unknown."""
        if self.clock is None:
            return None
        gaps = np.concatenate([np.diff(self.clock.seconds[self.gpu == gpu]) for gpu in range(self.gpus)])
        return float(np.median(gaps)) if len(gaps) else None


def numbered(names: Sequence[str]) -> npt.NDArray[np.intp]:
    """Number the names from 0 in the order of first appearance, `[name]`."""
    order = {name: number for number, name in enumerate(dict.fromkeys(names))}
    return np.array([order[name] for name in names], dtype=np.intp)


def training_point(source: SourceFile, log: PowerLog, context: ImportContext, hint: str) -> ImportedPoint:
    """Point of a training step with its mean power and energy per GPU.

    Args:
        source: the file of the log.
        log: its samples.
        context: the steps, and the training that they belong to.
        hint: advice on how to write a complete log.

    Raises:
        UsageError: no log of steps was given, or only one of the two logs has a time zone.
        InputFileError: too few samples are within the steps.
    """
    steps = context.steps
    if steps is None:
        raise UsageError(
            f"`{source.name}` is a power log, which does not say which steps ran",
            hint="give the log of the steps with `--steps LOG`: any log or table that `mpplan compare` reads",
        )
    inside = _within(log, steps, context.utc_offset_s)
    by_gpu = [log.watts[(log.gpu == gpu) if inside is None else (log.gpu == gpu) & inside] for gpu in range(log.gpus)]
    fewest = min(len(watts) for watts in by_gpu)
    if fewest < FEWEST_SAMPLES:
        when = "" if inside is None or steps.ends is None else f" ({_clock_times(steps.ends)})"
        raise InputFileError(
            f"{source.name}: expected at least {FEWEST_SAMPLES} samples per GPU within the steps{when}, found {fewest}",
            hint=hint,
        )
    mean_w = float(np.mean([watts.mean() for watts in by_gpu]))
    time = statistics_of(steps.steady_s)
    doubts = [*steps.doubts, *_doubts(log, inside is None, context.training)]
    return ImportedPoint(
        name=_name(context.training),
        kind="training",
        setup=RunSetup(role="step", precision=context.training.precision),
        shape=shape_of(context.training),
        communication=Communication(world=log.gpus),
        time=time,
        sampling=Sampling(samples=len(steps.steady_s), regime="sustained"),
        energy=EnergyUse(
            j_per_iteration=mean_w * (time.median_s or 0.0),
            window_s=_window_s(log, inside),
            tick_period_s=log.period_s(),
            source=log.field or None,
            quality="single",
            scope="board",
        ),
        power=PowerDraw(
            mean_w=mean_w,
            p95_w=float(np.quantile(np.concatenate(by_gpu), 0.95)),
            instant_mean_w=mean_w if log.field == "instant" else None,
            average_mean_w=mean_w if log.field == "average" else None,
        ),
        sd_ratio=STEP_SD,
        power_sd_ratio=UNTIMED_SD if inside is None else METERED_SD,
        doubts=tuple(doubts),
    )


def shape_of(training: Training) -> WorkShape:
    """Sizes of the training, as the shape of a point."""
    return WorkShape(model=training.model, seq_len=training.seq_len, tokens=training.tokens_per_gpu)


def _name(training: Training) -> str:
    return "/".join(["step", *(part for part in (training.model, training.precision) if part)])


def _within(log: PowerLog, steps: StepLog, utc_offset_s: float | None) -> npt.NDArray[np.bool_] | None:
    """Select the samples between the end of the first step and the end of the last; None if times are missing.

    Raises:
        UsageError: only one of the two logs has a time zone.
    """
    if log.clock is None or steps.ends is None or len(steps.ends.seconds) < 2:
        return None
    clock, ends = log.clock.in_utc(utc_offset_s), steps.ends.in_utc(utc_offset_s)
    if clock.zoned is not ends.zoned:
        local, known = ("steps", "power log") if clock.zoned else ("power log", "steps")
        raise UsageError(
            f"the times of the {local} have no time zone, but those of the {known} do",
            hint="say how far local time was ahead of UTC, for example `--utc-offset +01:00`",
        )
    first, last = float(ends.seconds.min()), float(ends.seconds.max())
    return np.asarray((clock.seconds >= first) & (clock.seconds <= last))


def _clock_times(ends: Clock) -> str:
    """Format the first and last end of a step, as their log gives the times."""
    first, last = (datetime.fromtimestamp(float(end), UTC) for end in (ends.seconds.min(), ends.seconds.max()))
    return f"{first:%Y-%m-%d %H:%M:%S} to {last:%Y-%m-%d %H:%M:%S}{' UTC' if ends.zoned else ''}"


def _window_s(log: PowerLog, inside: npt.NDArray[np.bool_] | None) -> float | None:
    if log.clock is None:
        return None
    seconds = log.clock.seconds if inside is None else log.clock.seconds[inside]
    return float(seconds.max() - seconds.min())


def _doubts(log: PowerLog, untimed: bool, training: Training) -> list[str]:
    doubts = [BOARD] if log.field == "counter" else [BOARD, DRIVER_FIELD]
    period_s = log.period_s()
    if period_s is not None:
        doubts.append(f"sampled every {period_s:.3g} s")
    if untimed:
        doubts.append(NO_TIMES)
    if training.gpus is not None and training.gpus != log.gpus:
        doubts.append(f"{log.gpus} of {training.gpus} GPUs were metered")
    return doubts
