"""What one line of a log tells, whatever framework wrote it."""

from __future__ import annotations

from typing import TypeAlias

from planner.lazy import dataclass
from planner.runlog.moments import Moment
from planner.text import shortened


class DamagedError(Exception):
    """A line is one of a framework's, and something in it is not what it should be."""

    def __init__(self, key: str, text: str, wanted: str = "a number above 0") -> None:
        """Say what is wrong.

        Args:
            key: the framework's name of it.
            text: what stands there.
            wanted: what should.
        """
        super().__init__(key, text, wanted)
        self.words = f"{key}: expected {wanted}, found `{shortened(text[:200])}`"


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """A line about steps of training: the last of them, and means over those since the line before."""

    number: int | None = None
    """Of the last step that it covers, the first being 1."""
    of: int | None = None
    """Steps of the whole run."""
    duration_s: float | None = None
    """Seconds per step; None: by the times of this line and the one before."""
    end: Moment | None = None
    sequences: float | None = None
    """Global batch."""
    tokens_per_s_per_gpu: float | None = None
    tflops_per_gpu: float | None = None
    """As printed: by the framework's own count."""
    mfu_ratio: float | None = None
    """As printed: by the framework's own count and peak."""
    data_s: float | None = None
    """Seconds per step that the step waited for data."""
    memory_gib: float | None = None
    """Peak of a GPU so far."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """Time of one part of a step, as a timer of the framework gives it; it belongs to the last step."""

    name: str
    """One of `PARTS`."""
    timer: str
    """The framework's name of it; several may make a part."""
    inside: str = ""
    """The timer that runs while it does, and whose part is less its time."""
    least_s: float
    """Seconds per step on the rank with the least."""
    most_s: float
    """On the rank with the most; of one rank alone, the same."""


PARTS = ("data", "forward", "backward", "communication", "optimizer")
"""Parts of a step that a framework's timers tell apart: `forward` and `backward` hold no part of the others."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """Something about the whole run that the log states once."""

    key: str
    """A column of `planner/catalog/published_runs.csv`, or one of `FACTS`."""
    value: str | float


FACTS = (
    "steps", "peak_flop_per_s", "tokens_per_step", "peak_mem_gib", "gated_mlp", "tied_embeddings", "grouped",
    "query_groups", "fp8", "other_shape", "mtp_layers", "head_dim", "shared_ffn", "dense_layers", "moe_every",
)  # fmt: skip
"""Keys of facts that are no column."""

MARKS = ("start", "load", "checkpoint", "evaluation", "end")
"""What happens between steps: the program begins, reads or writes a checkpoint, evaluates, has trained to its end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """Something that happened between two steps."""

    kind: str
    """One of `MARKS`."""
    duration_s: float | None = None
    """None where the line does not say how long."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """A progress bar: how far, and since when."""

    number: int
    of: int
    elapsed_s: float
    """Whole seconds since the bar was made."""
    rates: Step
    """What stands behind it (`v_num`, losses, timings), as a step without a number."""
    epoch: int | None = None
    """Where bars of one epoch follow each other."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Total:
    """The closing line of a run."""

    runtime_s: float
    """Of this session, with its evaluations and checkpoints."""
    steps: float
    """Of this session."""


Event: TypeAlias = "Step | Part | Fact | Mark | Progress | Total"
