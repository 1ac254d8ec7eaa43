"""A workload is a list of points; a point is made into a trial, and a trial is what a clock times."""

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
    """What a trial knows after its last step."""

    reason: str | None = None
    """What to know about the figures."""
    params: int | None = None
    """Parameters of its module."""
    attention_backend: str | None = None
    """Family of attention kernels that torch chose."""
    optimizer_state_bytes_per_param: float | None = None
    """Growth of the optimizer's state."""
    numerics: Numerics = field(default_factory=Numerics)
    """What the arithmetic did to the values."""


class Trial(Protocol):
    """Something that can be run again and again."""

    @property
    def held_bytes(self) -> float:
        """Bytes of tensors that it holds between steps."""

    @property
    def flags(self) -> tuple[str, ...]:
        """Recipe flags for the record."""

    @property
    def steps(self) -> int:
        """Iterations that one step holds; times are divided by it."""

    def step(self, mark: Mark) -> None:
        """One iteration. `mark` is called at the end of each phase: `forward`, `backward`, `optimizer`."""

    def outcome(self) -> TrialOutcome:
        """What is known after the last step."""


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
    """Arithmetic and traffic of an iteration."""
    communication: Communication = field(default_factory=Communication)
    """Who takes part, and in which collective."""
    messages: tuple[StepMessage, ...] = ()
    """Of a step over several ranks: what they send; from these and what was measured before, its time is predicted."""
    predicted: PredictedFigures = field(default_factory=PredictedFigures)
    """What it is expected to take."""
    tracked_peak_bytes: float | None = None
    """Peak memory by bookkeeping on fake tensors."""
    note: str | None = None
    """What to know about the figures, known beforehand."""
    records_recipe: bool = True
    """False: the precision means nothing to the point and is left out of its line."""
    memory: bool = False
    """True: the peak memory of a step is measured."""
    energy_s: float = 0.0
    """Length of the energy window; 0 for none."""
    cap_s: float | None = None
    """Most measured time; None: the suite's default for the kind."""
    graph: bool = False
    """True: short kernels are captured in a CUDA graph, so that launching does not show."""
    needs: str | None = None
    """A package that must be there."""
    unsupported: str | None = None
    """Why the point cannot be measured here, where that is known beforehand."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PointGroup:
    """Points that are compared, and so measured in interleaved rounds."""

    name: str
    """What the progress display shows."""
    points: Sequence[Point]
    estimate_s: float
    """Expected time, for the budget and the time left."""
    late: bool = False
    """True: worth less than the other groups of every workload, and so measured after all of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbePlan:
    """What to measure, for a workload to list its points."""

    device: Device
    suite: str
    """quick, default or thorough."""
    recipes: tuple[PrecisionRecipe, ...]
    """Recipes to measure: asked for, and supported by the device."""
    seed: int = 0
    has_sensor: bool = False
    """Whether energy can be read."""
    team: Team = ALONE
    """The ranks that measure together."""

    @property
    def on_gpu(self) -> bool:
        """Whether the device is a GPU."""
        return self.device.kind == "cuda"

    @property
    def kernel_recipes(self) -> tuple[PrecisionRecipe, ...]:
        """One recipe for each kind of matrix product."""
        return tuple(recipe for recipe in self.recipes if recipe.kernel)


class Workload(Protocol):
    """One kind of work."""

    name: str
    """What `--workload` takes."""
    summary: str

    def groups(self, plan: ProbePlan) -> Sequence[PointGroup]:
        """Points for this device and suite, most valuable first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CallTrial:
    """A trial that is one call."""

    call: Callable[[], object]
    held_bytes: float = 0.0
    flags: tuple[str, ...] = ()
    steps: int = 1

    def step(self, mark: Mark) -> None:
        """See `Trial.step`."""
        self.call()

    def outcome(self) -> TrialOutcome:
        """Nothing to add."""
        return TrialOutcome()
