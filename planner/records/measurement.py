"""One measured point, as `mpplan probe` writes it: `Measurement`, one JSON object per line of a record file.

Each line is complete in itself: the work, its time and resources, how they were read, and the machine. A file that is
cut off anywhere is therefore still a usable record. A line never holds a host name, a user name, a path or a raw device
UUID. `planner/records/jsonl.py` reads and writes the lines, whose keys are flat.
"""

from __future__ import annotations

from dataclasses import field
from math import hypot

from planner.lazy import dataclass
from planner.records.communication import Communication, OverlapFigures, RankFigures
from planner.records.figures import (
    DeviceState,
    EnergyUse,
    Numerics,
    PeakMemory,
    PowerDraw,
    PredictedFigures,
    Sampling,
    TimeStatistics,
    TrainingNumerics,
)
from planner.records.machine import DeviceIdentity, SoftwareVersions
from planner.records.origin import MergedFrom, Origin
from planner.records.work import RunSetup, WorkCounts, WorkShape

SCHEMA = "mpplan.probe/3"
"""Name and version of the line format; a line of an unknown version is reported and not used."""

STATUSES = ("ok", "unsupported", "oom", "gated", "error")
"""`gated`: the machine was never quiet enough to take a sample. A line whose status is not `ok` has a `reason`."""

KINDS = (
    "support",
    "idle",
    "canary",
    "launch",
    "bandwidth",
    "gemm",
    "attention",
    "memory_op",
    "block",
    "optimizer",
    "end_to_end",
    "power",
    "meter",
    "limit",
    "verify",
    "collective",
    "overlap",
    "parallel_step",
    "waiting",
    "training",
    "numerics",
)
"""Kinds of points. Points of the kinds in `SEVERAL_RANKS` involve several ranks. `training` (steps, epochs or runs that
another tool metered) is always imported, and `collective` may be. `numerics` is the result of real training in a
precision."""

SEVERAL_RANKS = ("collective", "overlap", "parallel_step", "waiting")
"""Kinds of points in which several ranks take part."""

QUALITIES = ("ok", "contended", "drift", "throttled")
"""Quality of the times of a line."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurement:
    """One measured point. Figures that do not apply or could not be read are None."""

    schema: str = SCHEMA
    """Name and version of the line format."""
    suite_version: int
    """Version of the suite's definitions; `--resume` measures points of another version again."""
    run_id: str
    """Random id of one run; a file holds one run."""
    probe_id: str
    """Stable name of the point, for example `gemm/8192x8192x8192/forward/bf16-autocast`."""
    seq: int
    """Sequence number within the run."""
    status: str
    """One of `STATUSES`."""
    reason: str | None = None
    """Reason why there is no figure, or a note about it."""
    kind: str
    """One of `KINDS`."""
    setup: RunSetup = field(default_factory=RunSetup)
    """Workload and settings of the run."""
    shape: WorkShape = field(default_factory=WorkShape)
    """Sizes of the work."""
    counts: WorkCounts = field(default_factory=WorkCounts)
    """Arithmetic and traffic."""
    communication: Communication = field(default_factory=Communication)
    """The collective, and the ranks that took part."""
    time: TimeStatistics = field(default_factory=TimeStatistics)
    """Time of one iteration."""
    sampling: Sampling = field(default_factory=Sampling)
    """How the times were sampled."""
    memory: PeakMemory = field(default_factory=PeakMemory)
    """Device memory."""
    energy: EnergyUse = field(default_factory=EnergyUse)
    """Energy of one iteration."""
    power: PowerDraw = field(default_factory=PowerDraw)
    """Power over the energy window."""
    device_state: DeviceState = field(default_factory=DeviceState)
    """Temperatures, clocks and the power limit."""
    numerics: Numerics = field(default_factory=Numerics)
    """Effect of the arithmetic on the values."""
    training_numerics: TrainingNumerics = field(default_factory=TrainingNumerics)
    """Result of real training in this precision."""
    ranks: RankFigures = field(default_factory=RankFigures)
    """Figures of each rank."""
    overlap: OverlapFigures = field(default_factory=OverlapFigures)
    """Products and collectives that ran concurrently."""
    predicted: PredictedFigures = field(default_factory=PredictedFigures)
    """Prediction that was made before the point was run."""
    device: DeviceIdentity
    """The device that was measured."""
    software: SoftwareVersions = field(default_factory=SoftwareVersions)
    """Versions and settings."""
    imported: Origin = field(default_factory=Origin)
    """The file of another tool that the line was imported from."""
    merged: MergedFrom = field(default_factory=MergedFrom)
    """The records of a fleet that the line was merged from."""
    timestamp_utc: str | None = None
    """ISO 8601 time at which the line was written."""
    monotonic_s: float | None = None
    """Reading of the monotonic clock at the same moment."""

    @property
    def usable_time(self) -> bool:
        """Whether the line holds a time that a plan may rest on."""
        return self.status == "ok" and self.time.median_s is not None and not self.memory.alloc_retries

    @property
    def time_relative_sd(self) -> float | None:
        """Relative standard error of the median, including the doubts about an imported line."""
        sampled, doubted = self.sampled_relative_sd, self.imported.sd_ratio
        return sampled if doubted is None else hypot(sampled or 0.0, doubted)

    @property
    def sampled_relative_sd(self) -> float | None:
        """Relative standard error from the samples: half the interval over 1.96, variance tripled if contended."""
        median_s, low_s, high_s = self.time.median_s, self.time.ci_low_s, self.time.ci_high_s
        if median_s is None or low_s is None or high_s is None:
            return None
        sd = (high_s - low_s) / (2 * 1.96 * median_s)
        return float(sd * 3**0.5) if self.sampling.quality == "contended" else float(sd)
