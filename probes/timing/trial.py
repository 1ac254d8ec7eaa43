"""A workload lists points; a point builds a trial, and a trial is what a clock times."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import field
from typing import Protocol

from planner.lazy import dataclass
from planner.measured.network.messages import StepMessage
from planner.records.communication import Communication
from planner.records.figures import Numerics, PredictedFigures
from planner.records.work import RunSetup, WorkCounts, WorkShape
from probes.device.clock import Mark
from probes.device.device import Device
from probes.precisions.interface import PrecisionRecipe
from probes.ranks.team import ALONE, Team


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialOutcome:
    """Figures of a trial that are known after its last step."""

    reason: str | None = None
    """Remark on the figures."""
    params: int | None = None
    """Number of parameters of its module."""
    attention_backend: str | None = None
    """Family of attention kernels that torch chose."""
    optimizer_state_bytes_per_param: float | None = None
    """Bytes of optimizer state per parameter."""
    numerics: Numerics = field(default_factory=Numerics)
    """Effect of the arithmetic on the values."""


class Trial(Protocol):
    """Something that can be run repeatedly."""

    @property
    def held_bytes(self) -> float:
        """Bytes of the tensors that it holds between steps."""

    @property
    def flags(self) -> tuple[str, ...]:
        """Recipe flags for the record."""

    @property
    def steps(self) -> int:
        """Iterations per step; times are divided by it."""

    def step(self, mark: Mark) -> None:
        """Run one step. `mark` is called at the end of each phase: `forward`, `backward`, `optimizer`."""

    def outcome(self) -> TrialOutcome:
        """Return what is known after the last step."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """One thing to measure."""

    probe_id: str
    kind: str
    """One of `planner.records.measurement.KINDS`."""
    workload: str
    recipe: PrecisionRecipe
    build: Callable[[Device], Trial]
    """Makes the trial on the device; may run out of memory."""
    setup: RunSetup = field(default_factory=RunSetup)
    """Settings known beforehand; workload, precision, recipe and seed are filled in when the line is written."""
    shape: WorkShape = field(default_factory=WorkShape)
    """Sizes of the work."""
    counts: WorkCounts = field(default_factory=WorkCounts)
    """Arithmetic and traffic per iteration."""
    communication: Communication = field(default_factory=Communication)
    """The ranks that take part, and the collective."""
    messages: tuple[StepMessage, ...] = ()
    """Messages of a step over several ranks; its time is predicted from them and from earlier measurements."""
    predicted: PredictedFigures = field(default_factory=PredictedFigures)
    """Predicted figures."""
    tracked_peak_bytes: float | None = None
    """Peak memory by tracking allocations of fake tensors."""
    note: str | None = None
    """Remark on the figures that is known beforehand."""
    records_recipe: bool = True
    """False: precision is irrelevant to the point and is left out of its line."""
    memory: bool = False
    """Whether the peak memory of a step is measured."""
    energy_s: float = 0.0
    """Length of the energy window; 0 for none."""
    cap_s: float | None = None
    """Longest measured time; None: the suite's default for the kind."""
    graph: bool = False
    """Whether short kernels are captured in a CUDA graph, which hides launch times."""
    needs: str | None = None
    """Package that must be installed."""
    unsupported: str | None = None
    """Why the point cannot be measured here, if that is known beforehand."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PointGroup:
    """Points that are compared, and therefore measured in interleaved rounds."""

    name: str
    """Name in the progress display."""
    points: Sequence[Point]
    estimate_s: float
    """Expected time, for the budget and for the remaining time."""
    late: bool = False
    """True: worth less than the other groups of every workload, and therefore measured after all of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbePlan:
    """What to measure, from which each workload lists its points."""

    device: Device
    suite: str
    """quick, default or thorough."""
    recipes: tuple[PrecisionRecipe, ...]
    """Recipes to measure: requested, and supported by the device."""
    seed: int = 0
    has_sensor: bool = False
    """Whether energy can be measured."""
    team: Team = ALONE
    """The ranks that measure together."""

    @property
    def on_gpu(self) -> bool:
        """Whether the device is a GPU."""
        return self.device.kind == "cuda"

    @property
    def kernel_recipes(self) -> tuple[PrecisionRecipe, ...]:
        """One recipe per kind of matrix product."""
        return tuple(recipe for recipe in self.recipes if recipe.kernel)


class Workload(Protocol):
    """One kind of work."""

    name: str
    """Name that `--workload` takes."""
    summary: str

    def groups(self, plan: ProbePlan) -> Sequence[PointGroup]:
        """Return points for this device and suite, most valuable first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CallTrial:
    """A trial that is a single call."""

    call: Callable[[], object]
    held_bytes: float = 0.0
    flags: tuple[str, ...] = ()
    steps: int = 1

    def step(self, mark: Mark) -> None:
        """See `Trial.step`."""
        self.call()

    def outcome(self) -> TrialOutcome:
        """Return no further figures."""
        return TrialOutcome()
