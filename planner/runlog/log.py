"""One training run as its log tells it: `RunLog`."""

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
    """The lines about steps, in their order; NaN where a line does not say."""

    number: Whole
    """Of the last step of each line, `[line]`."""
    count: Floats
    """Steps since the line before, `[line]`."""
    duration_s: Floats
    """Mean seconds per step, `[line]`."""
    end_s: Floats
    """When it was written, seconds since 1970, `[line]`."""
    attempt: Whole
    """Which start of the program it belongs to, from 0, `[line]`."""
    sequences: Floats
    """Global batch, `[line]`."""
    tokens_per_s_per_gpu: Floats
    tflops_per_gpu: Floats
    mfu_ratio: Floats
    data_s: Floats
    """Seconds per step that waited for data, `[line]`."""
    line: Whole
    """Its number in the file, `[line]`."""

    def __len__(self) -> int:
        return len(self.number)


@dataclass(frozen=True, slots=True, kw_only=True)
class PartTime:
    """Mean time of one part of a step over the lines that have it."""

    least_s: float
    """On the rank with the least: of a message, what it takes once everybody is there."""
    most_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Marked:
    """Something that happened between two lines of steps."""

    kind: str
    """One of `planner.runlog.events.MARKS`."""
    before: int
    """Index of the line of steps that follows it, `len(steps)` after the last one."""
    duration_s: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Closing:
    """What the closing line of a run says."""

    runtime_s: float
    steps: float


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RunLog:
    """One training run as its log tells it."""

    name: str
    """Of the file."""
    framework: str
    """As `framework` of a file of runs names it; empty where nothing says."""
    steps: Steps
    last_step: int | None
    """Of the whole run; None where the log does not say."""
    facts: Mapping[str, str | float]
    """Columns of published runs and `planner.runlog.events.FACTS` that the log states."""
    parts: Mapping[str, PartTime]
    """Parts of a step by name, where timers were on."""
    marks: tuple[Marked, ...]
    closing: Closing | None
    first_s: float | None
    """Earliest time of any line, seconds since 1970; None where no line has one."""
    final_s: float | None
    """Latest time of any line."""
    durations_from: str
    """`printed`, `clock` (times of day of the lines), `bar` (a progress bar), `timers`, or `` where there are none."""
    lines: int
    """Of the file."""
    understood: int
    """Lines that told something."""
    damaged: tuple[int, ...] = ()
    """The first lines that are a framework's and hold no number where one should be."""
    damaged_count: int = 0
    dropped: int = 0
    """Lines of other ranks about the same steps."""
    cut: bool = False
    """Whether the last line ends in the middle."""
    ended: bool = False
    """Whether the log says that training came to its end."""
    zoned: bool = True
    """Whether its times have a zone."""
    notes: tuple[str, ...] = field(default_factory=tuple)
    """Keys of what a reader has to know."""

    @property
    def attempts(self) -> int:
        """How often the program started."""
        return int(self.steps.attempt[-1]) + 1 if len(self.steps) else 0

    @property
    def reached(self) -> int:
        """The last step that was reached and not lost: of lines without numbers, as the closing one says; else 0."""
        numbered = int(self.steps.number[-1]) if len(self.steps) else 0
        return numbered or (0 if self.closing is None else round(self.closing.steps))
