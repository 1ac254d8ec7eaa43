"""One measured point, as `mpplan probe` writes it: `Measurement`, one JSON object per line of a record file.

Each line is complete in itself: what was run, how long it took, what it needed, how it was read and on which machine,
so that a file cut off anywhere is still a usable record. A line never holds a host name, a user name, a path or a raw
device UUID. `planner/records/jsonl.py` reads and writes the lines, whose keys are flat.
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
"""Kinds of points. Those of `SEVERAL_RANKS` are of several ranks; `training` (steps, epochs or runs that another tool
metered) is imported, and `collective` may be. `numerics` is what real training showed of a precision."""

SEVERAL_RANKS = ("collective", "overlap", "parallel_step", "waiting")
"""Kinds whose points several ranks take part in."""

QUALITIES = ("ok", "contended", "drift", "throttled")
"""How far the times of a line can be trusted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurement:
    """One measured point. Figures that do not apply or could not be read are None."""

    schema: str = SCHEMA
    """Name and version of the line format."""
    suite_version: int
    """Version of the suite's definitions; points of another version are measured again by `--resume`."""
    run_id: str
    """Random id of one run; a file holds one run."""
    probe_id: str
    """Stable name of the point, for example `gemm/8192x8192x8192/forward/bf16-autocast`."""
    seq: int
    """Running number within the run."""
    status: str
    """One of `STATUSES`."""
    reason: str | None = None
    """Why there is no figure, or what to know about it."""
    kind: str
    """One of `KINDS`."""
    setup: RunSetup = field(default_factory=RunSetup)
    """What was run, and with which settings."""
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
    """What the arithmetic did to the values."""
    training_numerics: TrainingNumerics = field(default_factory=TrainingNumerics)
    """What real training in this precision showed."""
    ranks: RankFigures = field(default_factory=RankFigures)
    """What each rank found."""
    overlap: OverlapFigures = field(default_factory=OverlapFigures)
    """A product beside a collective."""
    predicted: PredictedFigures = field(default_factory=PredictedFigures)
    """What was predicted before the point was run."""
    device: DeviceIdentity
    """The device that was measured."""
    software: SoftwareVersions = field(default_factory=SoftwareVersions)
    """Versions and settings."""
    imported: Origin = field(default_factory=Origin)
    """The file of another tool that the line is from."""
    merged: MergedFrom = field(default_factory=MergedFrom)
    """The records of a fleet that the line is of."""
    timestamp_utc: str | None = None
    """ISO 8601 time at which the line was written."""
    monotonic_s: float | None = None
    """Monotonic clock at the same moment."""

    @property
    def usable_time(self) -> bool:
        """Whether the line holds a time that a plan may rest on."""
        return self.status == "ok" and self.time.median_s is not None and not self.memory.alloc_retries

    @property
    def time_relative_sd(self) -> float | None:
        """Relative standard error of the median, with what an imported line's doubts add to it."""
        sampled, doubted = self.sampled_relative_sd, self.imported.sd_ratio
        return sampled if doubted is None else hypot(sampled or 0.0, doubted)

    @property
    def sampled_relative_sd(self) -> float | None:
        """The same by the samples alone: half the interval over 1.96; variance tripled where contended."""
        median_s, low_s, high_s = self.time.median_s, self.time.ci_low_s, self.time.ci_high_s
        if median_s is None or low_s is None or high_s is None:
            return None
        sd = (high_s - low_s) / (2 * 1.96 * median_s)
        return float(sd * 3**0.5) if self.sampling.quality == "contended" else float(sd)
