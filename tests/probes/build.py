"""Devices, points and trials for tests of the probes."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from probes.device.clock import Batch, Mark
from probes.device.device import Device
from probes.precisions import choose, recipe_by_id
from probes.timing.trial import CallTrial, Point, ProbePlan, TrialOutcome

if TYPE_CHECKING:
    from probes.session.suite import Session

CPU = Device(
    kind="cpu",
    index=0,
    name="Some CPU",
    uuid=None,
    capability=(0, 0),
    memory_bytes=16e9,
    sm_count=None,
    l2_bytes=None,
)
H200 = Device(
    kind="cuda",
    index=0,
    name="NVIDIA H200",
    uuid="11111111-2222-3333-4444-555555555555",
    capability=(9, 0),
    memory_bytes=150754820096.0,
    sm_count=132,
    l2_bytes=62914560.0,
)
"""What torch says of an H200; the UUID is made up."""


def plan(device: Device = CPU, suite: str = "default", *, has_sensor: bool = False) -> ProbePlan:
    """A plan with all recipes that the device runs by its own account."""
    recipes = tuple(recipe for recipe in choose((), device.kind) if recipe.unsupported_on(device) is None)
    return ProbePlan(device=device, suite=suite, recipes=recipes, has_sensor=has_sensor)


def point(probe_id: str, build: Callable[[Device], Any], **changes: Any) -> Point:
    """A point of a made-up workload in FP32."""
    values: dict[str, Any] = {
        "probe_id": probe_id,
        "kind": "gemm",
        "workload": "gemm",
        "recipe": recipe_by_id("fp32"),
        "build": build,
    }
    return Point(**(values | changes))


def call(function: Callable[[], object] = lambda: None) -> Callable[[Device], CallTrial]:
    """Builds a trial that calls a function."""
    return lambda _device: CallTrial(call=function)


class ScriptedClock:
    """A clock whose samples are written down beforehand; counts what it was asked for."""

    def __init__(self, samples: Callable[[object, int], float]) -> None:
        self.samples = samples
        self.calls: list[tuple[object, int]] = []
        self.taken: dict[int, int] = {}

    def synchronize(self) -> None:
        """Nothing to wait for."""

    def agree(self, decision: bool) -> bool:
        return decision

    def batch(self, trial: object, *, samples: int, iterations: int) -> Batch:
        """As many samples as asked for, from the script."""
        self.calls.append((trial, samples))
        first = self.taken.get(id(trial), 0)
        self.taken[id(trial)] = first + samples
        values = tuple(self.samples(trial, first + i) for i in range(samples))
        return Batch(samples_s=values, phases_s={"forward": values}, wall_s=sum(values) * iterations)


class ScriptedGate:
    """A gate that tells one load after the other, the last one for ever."""

    window_s = 0.0

    def __init__(self, *loads: float) -> None:
        self.loads = list(loads)

    def open(self) -> object:
        """Nothing to note."""
        return None

    def judge(self, start: object) -> float | None:
        """The next load."""
        return self.loads.pop(0) if len(self.loads) > 1 else self.loads[0]

    def accepts(self, ratio: float | None) -> bool:
        """As the real gate."""
        return ratio is None or ratio <= 0.05


class NamedTrial:
    """A trial that does nothing, with a name."""

    held_bytes = 0.0
    flags: tuple[str, ...] = ()
    steps = 1

    def __init__(self, name: str) -> None:
        self.name = name

    def step(self, mark: Mark) -> None:
        """Nothing."""

    def outcome(self) -> TrialOutcome:
        """Nothing to add."""
        return TrialOutcome()


def ungated(session: Session) -> Session:
    """The session without its gate: other tests keep the machine busy, and it would measure each trial three times."""
    session.bench = replace(session.bench, gate=None)
    return session


@contextmanager
def without_onednn() -> Iterator[None]:
    """Matrix products by torch's own kernels, which take no scratch from its allocator."""
    import torch

    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="TF32 acceleration on top of oneDNN")
        with torch.backends.mkldnn.flags(enabled=False):
            yield
