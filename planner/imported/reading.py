"""What the file of another tool says, before it becomes lines of a record."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field

import numpy as np
import numpy.typing as npt

from planner.imported.steps.log import StepLog
from planner.lazy import dataclass
from planner.records.communication import Communication
from planner.records.figures import EnergyUse, PowerDraw, Sampling, TimeStatistics
from planner.records.machine import SoftwareVersions
from planner.records.work import RunSetup, WorkCounts, WorkShape

Floats = npt.NDArray[np.float64]

FEWEST_FOR_INTERVAL = 6
"""Samples below which no 95 % interval of the median exists: 2 × 0.5⁵ is above 5 % (Conover, order statistics)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Training:
    """What was trained while the file was written, as the user says; None where they do not."""

    model: str | None = None
    """A catalogue model, or a name of their own."""
    precision: str | None = None
    gpus: int | None = None
    """All GPUs of the run, which may be more than were metered."""
    seq_len: int | None = None
    """Tokens of a sequence."""
    global_batch: int | None = None
    """Sequences per step."""

    @property
    def tokens_per_gpu(self) -> int | None:
        """Tokens of a step on each GPU; None where a part of it is not known or it is no whole number."""
        if self.gpus is None or self.seq_len is None or self.global_batch is None:
            return None
        tokens, rest = divmod(self.seq_len * self.global_batch, self.gpus)
        return tokens if rest == 0 and tokens > 0 else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Beside:
    """What the user gives beside the file."""

    training: Training = field(default_factory=Training)
    steps: StepLog | None = None
    """When steps ended and how long they took."""
    utc_offset_s: float | None = None
    """How far times without a zone are ahead of UTC."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportedPoint:
    """One point; its groups are those of `planner.records.measurement.Measurement`."""

    name: str
    """What tells it from the other points of the file, for example `8192x8192x8192/bf16-pure`."""
    kind: str
    setup: RunSetup = field(default_factory=RunSetup)
    shape: WorkShape = field(default_factory=WorkShape)
    communication: Communication = field(default_factory=Communication)
    counts: WorkCounts = field(default_factory=WorkCounts)
    time: TimeStatistics = field(default_factory=TimeStatistics)
    sampling: Sampling = field(default_factory=Sampling)
    energy: EnergyUse = field(default_factory=EnergyUse)
    power: PowerDraw = field(default_factory=PowerDraw)
    sd_ratio: float
    """Relative standard deviation of its time that its doubts stand for, beside that of the samples."""
    power_sd_ratio: float | None = None
    """The same of its mean power; None where none was read."""
    doubts: tuple[str, ...] = ()
    """Its own; those of the file come first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """What a file says."""

    points: tuple[ImportedPoint, ...]
    """At least one."""
    doubts: tuple[str, ...]
    """Of all its points, in words; at least one."""
    tool_version: str | None = None
    device_name: str | None = None
    """As the driver reports it; None where the file does not name the GPU."""
    memory_total_bytes: float | None = None
    software: SoftwareVersions = field(default_factory=SoftwareVersions)
    date: str | None = None
    """ISO 8601 time of the first sample."""


def statistics_of(samples_s: Sequence[float] | Floats) -> TimeStatistics:
    """Order statistics of times; of few samples without an interval, which they do not have.

    Args:
        samples_s: at least one, positive.
    """
    ordered = np.sort(np.asarray(samples_s, dtype=np.float64))
    count = len(ordered)
    low = high = None
    if count >= FEWEST_FOR_INTERVAL:  # ranks by the normal approximation of the binomial
        half = 0.98 * np.sqrt(count)
        low = float(ordered[max(int(np.floor((count - 1) / 2 - half)), 0)])
        high = float(ordered[min(int(np.ceil((count - 1) / 2 + half)), count - 1)])
    quarter, three_quarters = np.quantile(ordered, [0.25, 0.75])
    return TimeStatistics(
        median_s=float(np.median(ordered)),
        ci_low_s=low,
        ci_high_s=high,
        iqr_s=float(three_quarters - quarter),
        p05_s=float(np.quantile(ordered, 0.05)),
        p95_s=float(np.quantile(ordered, 0.95)),
        min_s=float(ordered[0]),
    )
