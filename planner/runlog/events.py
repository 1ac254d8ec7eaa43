"""Events that a line of a log may hold, whatever framework wrote it."""

from __future__ import annotations

from typing import TypeAlias

from planner.lazy import dataclass
from planner.runlog.moments import Moment
from planner.text import shortened


class DamagedError(Exception):
    """A line has the format of a framework, but holds an invalid value."""

    def __init__(self, key: str, text: str, expected: str = "a number above 0") -> None:
        """Describe the invalid value.

        Args:
            key: the framework's name of the value.
            text: text that was found.
            expected: description of the expected value.
        """
        super().__init__(key, text, expected)
        self.words = f"{key}: expected {expected}, found `{shortened(text[:200])}`"


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """A line about training steps: the number of the last one, and means over the steps since the previous line."""

    number: int | None = None
    """Number of the last step that the line covers; the first step is 1."""
    of: int | None = None
    """Number of steps in the whole run."""
    duration_s: float | None = None
    """Seconds per step; None if they follow from the times of this line and the previous one."""
    end: Moment | None = None
    sequences: float | None = None
    """Global batch in sequences."""
    tokens_per_s_per_gpu: float | None = None
    tflops_per_gpu: float | None = None
    """Printed TFLOP/s per GPU, by the framework's own FLOP count."""
    mfu_ratio: float | None = None
    """Printed MFU, by the framework's own FLOP count and peak."""
    data_s: float | None = None
    """Seconds per step spent waiting for data."""
    memory_gib: float | None = None
    """Peak memory of a GPU so far."""
    late: bool = False
    """Whether the line may have been written some steps after its own, as when figures are gathered before they are
    logged."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Detail:
    """More figures of the latest line about steps, on a line of their own."""

    figures: Step
    """The figures; its number, time and length of the run are not used."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """Time of one part of the last step, from a timer of the framework."""

    name: str
    """One of `PARTS`."""
    timer: str
    """Name of the timer in the framework; several timers may belong to one part."""
    inside: str = ""
    """Enclosing timer, from whose part this time is subtracted."""
    least_s: float
    """Seconds per step on the rank with the shortest time."""
    most_s: float
    """Seconds per step on the rank with the longest time; equal to `least_s` for a single rank."""


PARTS = ("data", "forward", "backward", "communication", "optimizer")
"""Parts of a step that timers of a framework separate; `forward` and `backward` include none of the other parts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """A property of the whole run that the log states once."""

    key: str
    """A column of `planner/catalog/published_runs.csv`, or one of `FACTS`."""
    value: str | float


FACTS = (
    "steps", "peak_flop_per_s", "tokens_per_step", "peak_mem_gib", "gated_mlp", "tied_embeddings", "grouped",
    "query_groups", "fp8", "other_shape", "mtp_layers", "head_dim", "shared_ffn", "dense_layers", "moe_every",
)  # fmt: skip
"""Keys of facts that are not columns of published runs."""

MARKS = ("start", "load", "checkpoint", "evaluation", "end")
"""Events between steps: the program starts, loads or saves a checkpoint, evaluates, or reaches the end of training."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """An event between two steps."""

    kind: str
    """One of `MARKS`."""
    duration_s: float | None = None
    """Duration; None if the line does not give it."""
    after_step: int | None = None
    """For `start` and `load`, the step from which training goes on, 0 at the beginning; None if the line does not give
    it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """State of a progress bar: steps done, steps in total, and elapsed time."""

    number: int
    of: int
    elapsed_s: float
    """Whole seconds since the bar was created."""
    rates: Step
    """Rates and timings printed behind the bar, as a step without a number."""
    epoch: int | None = None
    """Number of the epoch, if there is one bar per epoch; otherwise None."""
    overall: int | None = None
    """Steps done in the whole run, if the bar of an epoch shows them, too."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Total:
    """Closing line of a run."""

    runtime_s: float
    """Wall-clock time since the program started, including evaluations and checkpoints."""
    steps: float
    """Number of steps since the program started."""


Event: TypeAlias = "Step | Detail | Part | Fact | Mark | Progress | Total"
