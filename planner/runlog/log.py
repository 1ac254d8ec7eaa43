"""One training run as described by its log: `RunLog`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

import numpy as np
import numpy.typing as npt

from planner.lazy import dataclass

Floats = npt.NDArray[np.float64]
Whole = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Steps:
    """Lines about steps, in their order; NaN if a line does not give a value."""

    number: Whole
    """Number of the last step of each line, `[line]`."""
    count: Floats
    """Number of steps since the previous line, `[line]`."""
    duration_s: Floats
    """Mean seconds per step, `[line]`."""
    end_s: Floats
    """Time at which the line was written, in seconds since 1970, `[line]`."""
    attempt: Whole
    """Number of the program start that the line belongs to, from 0, `[line]`."""
    sequences: Floats
    """Global batch in sequences, `[line]`."""
    tokens_per_s_per_gpu: Floats
    tflops_per_gpu: Floats
    mfu_ratio: Floats
    data_s: Floats
    """Seconds per step spent waiting for data, `[line]`."""
    line: Whole
    """Number of the line in the file, `[line]`."""

    def __len__(self) -> int:
        return len(self.number)


@dataclass(frozen=True, slots=True, kw_only=True)
class PartTime:
    """Mean time of one part of a step over the lines that have it."""

    least_s: float
    """Time on the rank with the shortest time; for a collective, its duration once all ranks have arrived."""
    most_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Marked:
    """An event between two lines of steps."""

    kind: str
    """One of `planner.runlog.events.MARKS`."""
    before: int
    """Index of the line of steps that follows; `len(steps)` after the last one."""
    duration_s: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Closing:
    """Content of the closing line of a run."""

    runtime_s: float
    steps: float


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RunLog:
    """One training run as described by its log."""

    name: str
    """Name of the file."""
    framework: str
    """Framework, as the column `framework` of a file of runs names it; empty if unknown."""
    steps: Steps
    last_step: int | None
    """Number of the last step of the whole run; None if the log does not give it."""
    facts: Mapping[str, str | float]
    """Columns of published runs and `planner.runlog.events.FACTS` that the log states."""
    parts: Mapping[str, PartTime]
    """Parts of a step by name, if timers were on."""
    marks: tuple[Marked, ...]
    closing: Closing | None
    first_s: float | None
    """Earliest time of any line, in seconds since 1970; None if no line has a time."""
    final_s: float | None
    """Latest time of any line."""
    durations_from: str
    """`printed`, `clock` (times of day of the lines), `bar` (a progress bar), `timers`, or `` if there are none."""
    lines: int
    """Number of lines in the file."""
    understood: int
    """Number of lines with events."""
    damaged: tuple[int, ...] = ()
    """Numbers of the first lines that have a framework's format but an invalid value."""
    damaged_count: int = 0
    dropped: int = 0
    """Number of lines of other ranks about the same steps."""
    cut: bool = False
    """Whether the last line is cut off."""
    ended: bool = False
    """Whether the log says that training reached its end."""
    zoned: bool = True
    """Whether its times have a time zone."""
    notes: tuple[str, ...] = field(default_factory=tuple)
    """Keys of notes for the reader."""

    @property
    def attempts(self) -> int:
        """Number of times that the program started."""
        return int(self.steps.attempt[-1]) + 1 if len(self.steps) else 0

    @property
    def reached(self) -> int:
        """Last step that was reached and not lost; without step numbers, the count of the closing line, else 0."""
        numbered = int(self.steps.number[-1]) if len(self.steps) else 0
        return numbered or (0 if self.closing is None else round(self.closing.steps))
