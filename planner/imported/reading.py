"""Content of another tool's file, before it becomes lines of a record."""

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
"""Number of samples below which the median has no 95 % interval: 2 × 0.5⁵ is above 5 % (Conover, order statistics)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Training:
    """The user's description of the training during which the file was written; None for what they do not give."""

    model: str | None = None
    """Model of the catalogue, or the user's own name for a model."""
    precision: str | None = None
    gpus: int | None = None
    """Number of GPUs of the run, of which only some may have been metered."""
    seq_len: int | None = None
    """Sequence length in tokens."""
    global_batch: int | None = None
    """Number of sequences per step."""

    @property
    def tokens_per_gpu(self) -> int | None:
        """Tokens of a step on each GPU; None if a part of it is unknown or it is not a whole number."""
        if self.gpus is None or self.seq_len is None or self.global_batch is None:
            return None
        tokens, remainder = divmod(self.seq_len * self.global_batch, self.gpus)
        return tokens if remainder == 0 and tokens > 0 else None


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportContext:
    """Information that the user gives beside the file."""

    training: Training = field(default_factory=Training)
    steps: StepLog | None = None
    """Ends and durations of the steps."""
    utc_offset_s: float | None = None
    """Offset from UTC of times without a zone; positive if they are ahead."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportedPoint:
    """One imported point, with the groups of fields of `planner.records.measurement.Measurement`."""

    name: str
    """Name that is unique among the points of the file, for example `8192x8192x8192/bf16-pure`."""
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
    """Relative standard deviation of its time due to its doubts, in addition to that of the samples."""
    power_sd_ratio: float | None = None
    """Relative standard deviation of its mean power; None if no power was read."""
    doubts: tuple[str, ...] = ()
    """Doubts about this point, which follow those about the file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """Content of a file."""

    points: tuple[ImportedPoint, ...]
    """Points, at least one."""
    doubts: tuple[str, ...]
    """Doubts about all of its points, in words, at least one."""
    tool_version: str | None = None
    device_name: str | None = None
    """Name of the GPU as the driver reports it; None if the file does not give it."""
    memory_total_bytes: float | None = None
    software: SoftwareVersions = field(default_factory=SoftwareVersions)
    date: str | None = None
    """ISO 8601 time of the first sample."""


def statistics_of(samples_s: Sequence[float] | Floats) -> TimeStatistics:
    """Order statistics of times, without an interval if there are fewer samples than `FEWEST_FOR_INTERVAL`.

    Args:
        samples_s: times, at least one, positive.
    """
    ordered = np.sort(np.asarray(samples_s, dtype=np.float64))
    count = len(ordered)
    low = high = None
    if count >= FEWEST_FOR_INTERVAL:  # ranks from the normal approximation to the binomial
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
