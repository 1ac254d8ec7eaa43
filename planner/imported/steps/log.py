"""A log of training steps, whatever program wrote it: how long each step took and when it ended."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from planner.imported.source import SourceFile
from planner.lazy import dataclass
from planner.runlog.events import DamagedError, Step
from planner.runlog.formats.base import LogFormat
from planner.runlog.moments import Clock, Moment

Floats = npt.NDArray[np.float64]

FEWEST_TO_DROP_ONE = 3
"""Number of lines from which on the first one, which includes warm-up and compilation, is left out."""
WITH_DATA = "step times include whatever the program does between two steps: loading data, logging, checkpoints"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class StepLog:
    """The steps of one training run."""

    program: str
    """Training program, as the column `framework` in a file of runs names it; empty if the log does not say."""
    durations_s: Floats
    """Seconds per step, one entry for each line of the log with a duration, `[line]`."""
    ends: Clock | None = None
    """Time of each line, `[line]`; None if the log has no times. The first line is included, although its step has no
    duration if durations come from the times of two lines."""
    sequences_per_step: float | None = None
    """Global batch in sequences; None if the log does not give it."""
    doubts: tuple[str, ...] = ()

    @property
    def steady_s(self) -> Floats:
        """Durations without the first line, if there are enough lines."""
        return self.durations_s[1:] if len(self.durations_s) >= FEWEST_TO_DROP_ONE else self.durations_s


@dataclass(frozen=True, slots=True, kw_only=True)
class StepFormat:
    """One format in which programs log their steps."""

    name: str
    """Name of the program, or of the kind of file."""
    recognises: Callable[[str], bool]
    """Whether the first characters of a file are of this format."""
    read: Callable[[SourceFile], StepLog]
    """Reads a file. It raises `InputFileError` if the file has no step, or a line about a step is damaged."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoggedStep:
    """One line of a log."""

    line: int
    number: int | None = None
    """Number of the step."""
    duration_s: float | None = None
    """Seconds per step; None if they follow from the times of this line and the previous one."""
    end: Moment | None = None
    sequences: float | None = None


def logged_steps(source: SourceFile, form: LogFormat) -> list[LoggedStep]:
    """Collect the steps of a file from the lines of one framework.

    Raises:
        InputFileError: such a line holds something else where a number should be.
    """
    logged = []
    for number, text in source.lines():
        if not any(mark in text for mark in form.marks):
            continue
        try:
            events = list(form.read(text))
        except DamagedError as error:
            raise source.fail(number, error.words) from None
        logged += [
            LoggedStep(
                line=number, number=event.number, duration_s=event.duration_s, end=event.end, sequences=event.sequences
            )
            for event in events
            if isinstance(event, Step)
        ]
    return logged


def has_steps(head: str, form: LogFormat) -> bool:
    """Whether the beginning of a file has a line about a step of this framework, intact or damaged."""
    for text in head.splitlines():
        if any(mark in text for mark in form.marks):
            try:
                if any(isinstance(event, Step) for event in form.read(text.strip())):
                    return True
            except DamagedError:
                return True
    return False


def step_log(source: SourceFile, program: str, logged: Sequence[LoggedStep], doubts: tuple[str, ...]) -> StepLog:
    """Build the log from these lines; a step that several ranks log counts once.

    Raises:
        InputFileError: there is no step, times run backwards, or a step has neither a duration nor a time.
    """
    steps = _once_each(logged)
    if not steps:
        raise source.fail(1, "expected steps of training, found none")
    timed = all(step.end is not None for step in steps)
    if timed:
        _check_order(source, steps)
    ends = Clock.of([step.end for step in steps if step.end is not None]) if timed else None
    if any(step.duration_s is None for step in steps):
        durations = _between(source, steps, timed=timed)
        steps = steps[1:]
    else:
        durations = [step.duration_s or 0.0 for step in steps]
    batches = {step.sequences for step in steps}
    return StepLog(
        program=program,
        durations_s=np.array(durations, dtype=np.float64),
        ends=ends,
        sequences_per_step=batches.pop() if len(batches) == 1 else None,
        doubts=(WITH_DATA, *doubts),
    )


def _once_each(logged: Sequence[LoggedStep]) -> list[LoggedStep]:
    """Keep the first line of each step, and all lines without a number."""
    numbered: dict[int, LoggedStep] = {}
    for step in logged:
        if step.number is not None:
            numbered.setdefault(step.number, step)
    return [step for step in logged if step.number is None or numbered[step.number] is step]


def _check_order(source: SourceFile, steps: Sequence[LoggedStep]) -> None:
    for before, after in pairwise(steps):
        if before.end is None or after.end is None:
            continue
        if before.end.zoned is not after.end.zoned:
            raise source.fail(after.line, "expected a time zone on every time or on none")
        if after.end.seconds < before.end.seconds:
            raise source.fail(after.line, f"expected a time later than that of line {before.line}")


def _between(source: SourceFile, steps: Sequence[LoggedStep], *, timed: bool) -> list[float]:
    """Seconds per step between successive lines, from their times."""
    if not timed or len(steps) < 2:
        raise source.fail(steps[0].line, "expected the duration of each step, or the times of two or more")
    durations = []
    for before, after in pairwise(steps):
        assert before.end is not None
        assert after.end is not None
        step_count = 1 if before.number is None or after.number is None else after.number - before.number
        elapsed_s = after.end.seconds - before.end.seconds
        if step_count < 1 or elapsed_s <= 0:
            raise source.fail(after.line, f"expected a later step and time than those of line {before.line}")
        durations.append(elapsed_s / step_count)
    return durations
