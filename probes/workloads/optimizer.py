"""Optimizers: seconds, joules and bytes per parameter of one update."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from importlib.util import find_spec
from typing import Any

from planner.lazy import dataclass
from planner.records.work import RunSetup, WorkCounts
from probes.device.clock import Mark
from probes.device.device import Device
from probes.device.faults import cleaned
from probes.precisions import recipe_by_id
from probes.timing.trial import Point, PointGroup, ProbePlan, Trial, TrialOutcome
from probes.workloads.expected import group_s

GPU_PARAMS = 2**29
CPU_PARAMS = 2**23
MATRIX = {"cuda": 4096, "cpu": 512}
"""Size of the square matrices that hold the parameters, because a model has many tensors rather than one."""
ENERGY_S = 3.0


@dataclass(frozen=True, slots=True, kw_only=True)
class OptimizerCase:
    """One optimizer on parameters of one type."""

    id: str
    """Id for the record; the planner's id if there is one."""
    make: Callable[[list[Any]], Any]
    dtype: str = "float32"
    suites: tuple[str, ...] = ("default", "thorough")
    cpu_suites: tuple[str, ...] | None = None
    """Suites on a CPU; None: the same as `suites`."""
    devices: tuple[str, ...] = ("cuda",)
    compile_s: float = 0.0
    """Assumed compile time of the first step, for the time budget only; optimizers that compile are measured late."""
    energy: bool = False
    """Whether the default suite measures its energy as well; the thorough suite measures that of all optimizers."""
    needs: str | None = None
    """Dotted name of an object that must be importable."""

    def is_in(self, plan: ProbePlan) -> bool:
        """Return whether a plan's suite measures it on the plan's device."""
        suites = self.suites if plan.on_gpu or self.cpu_suites is None else self.cpu_suites
        return plan.suite in suites and plan.device.kind in self.devices

    def missing(self) -> str | None:
        """Return what is not installed; None if nothing is missing."""
        if self.needs is None:
            return None
        package, _, attribute = self.needs.rpartition(".")
        if find_spec(package.split(".")[0]) is None:
            return f"needs {package.split('.')[0]}, which is not installed"
        import importlib

        try:
            exists = hasattr(importlib.import_module(package), attribute)
        except Exception as error:  # a version incompatible with this torch must not end the run
            return f"{package} cannot be imported: {cleaned(error)}"
        return None if exists else f"this version lacks {self.needs}"


def _torch(name: str, **settings: Any) -> Callable[[list[Any]], Any]:
    def make(tensors: list[Any]) -> Any:
        import torch

        return getattr(torch.optim, name)(tensors, lr=1e-4, **settings)

    return make


def _adamw_8bit(tensors: list[Any]) -> Any:
    from torchao.optim import AdamW8bit

    return AdamW8bit(tensors, lr=1e-4)


def _custom(name: str) -> Callable[[list[Any]], Any]:
    """Return a function that makes an optimizer which torch lacks."""

    def make(tensors: list[Any]) -> Any:
        from probes.workloads import updates

        return getattr(updates, name)(tensors)

    return make


_LONG = ("thorough", "claims")
"""Suites with time for optimizers that few plans depend on."""

OPTIMIZERS = (
    OptimizerCase(
        id="adamw",
        make=_torch("AdamW", fused=True),
        suites=("quick", "default", "thorough", "claims"),
        devices=("cuda", "cpu"),
        energy=True,
    ),
    OptimizerCase(id="adamw-bf16", make=_torch("AdamW", fused=True), dtype="bfloat16", devices=("cuda", "cpu")),
    OptimizerCase(
        id="adamw-foreach", make=_torch("AdamW", foreach=True), devices=("cuda", "cpu"), suites=("thorough",)
    ),
    OptimizerCase(
        id="adamw-8bit",
        make=_adamw_8bit,
        suites=("default", *_LONG),
        cpu_suites=_LONG,
        devices=("cuda", "cpu"),
        compile_s=20.0,
        needs="torchao.optim.AdamW8bit",
    ),
    OptimizerCase(
        id="adafactor",
        make=_torch("Adafactor"),
        suites=("default", *_LONG),
        cpu_suites=_LONG,
        devices=("cuda", "cpu"),
        needs="torch.optim.Adafactor",
    ),
    OptimizerCase(id="lamb", make=_custom("Lamb"), suites=_LONG, devices=("cuda", "cpu")),
    OptimizerCase(id="sophia", make=_custom("SophiaG"), suites=_LONG, devices=("cuda", "cpu")),
    OptimizerCase(id="sgd-momentum", make=_torch("SGD", momentum=0.9, fused=True), devices=("cuda", "cpu")),
    OptimizerCase(id="muon", make=_torch("Muon"), needs="torch.optim.Muon", suites=("thorough",)),
)
"""All optimizers that are measured."""


class OptimizerStep:
    """Cost of an update per parameter."""

    name = "optimizer"
    summary = "optimizer updates: time, energy and state per parameter"

    def groups(self, plan: ProbePlan) -> Sequence[PointGroup]:
        """Return one group per optimizer, because each needs much of the memory."""
        cases = [case for case in OPTIMIZERS if case.is_in(plan)]
        points = [(case, _point(plan, case)) for case in cases]
        return [
            PointGroup(
                name=f"optimizer {case.id}",
                points=[point],
                estimate_s=_estimate_s(plan, case, point),
                late=plan.on_gpu and case.compile_s > 0,
            )
            for case, point in points
        ]


def _estimate_s(plan: ProbePlan, case: OptimizerCase, point: Point) -> float:
    if point.unsupported:
        return 0.0
    return case.compile_s + (group_s(plan, [point]) if plan.on_gpu else 0.8)


def _point(plan: ProbePlan, case: OptimizerCase) -> Point:
    size = MATRIX[plan.device.kind]
    count = (GPU_PARAMS if plan.on_gpu else CPU_PARAMS) // size**2
    recipe = recipe_by_id("fp32" if case.dtype == "float32" else "bf16-pure")
    return Point(
        probe_id=f"optimizer/{case.id}",
        kind="optimizer",
        workload="optimizer",
        recipe=recipe,
        setup=RunSetup(optimizer=case.id, data_distribution="normal"),
        counts=WorkCounts(params=count * size**2),
        build=partial(_build, case.id, count, size),
        memory=True,
        energy_s=ENERGY_S if plan.has_sensor and (case.energy or plan.suite == "thorough") else 0.0,
        unsupported=case.missing() or recipe.unsupported_on(plan.device),
    )


class _OptimizerTrial:
    """Parameters with fixed random gradients, updated again and again."""

    flags: tuple[str, ...] = ()
    steps = 1

    def __init__(self, case: OptimizerCase, count: int, size: int, device: Device) -> None:
        import torch

        dtype = getattr(torch, case.dtype)
        self.tensors = [torch.randn(size, size, device=device.torch).to(dtype) for _ in range(count)]
        for tensor in self.tensors:
            tensor.requires_grad_()
            tensor.grad = torch.randn(size, size, device=device.torch).mul_(1e-3).to(dtype)
        self.optimizer = case.make(self.tensors)

    @property
    def held_bytes(self) -> float:
        """Bytes of parameters, gradients and optimizer states."""
        return float(sum(2 * tensor.nbytes for tensor in self.tensors)) + self._state_bytes()

    def step(self, mark: Mark) -> None:
        """See `Trial.step`."""
        self.optimizer.step()
        mark("optimizer")

    def outcome(self) -> TrialOutcome:
        """Return the state bytes per parameter."""
        params = sum(tensor.numel() for tensor in self.tensors)
        return TrialOutcome(optimizer_state_bytes_per_param=self._state_bytes() / params)

    def _state_bytes(self) -> float:
        import torch

        states = [v for state in self.optimizer.state.values() for v in state.values() if isinstance(v, torch.Tensor)]
        return float(sum(_nbytes(tensor) for tensor in states))


def _nbytes(tensor: Any) -> int:
    """Return the bytes of a tensor; for a quantised tensor, the sum over its parts."""
    names = getattr(tensor, "__tensor_flatten__", None)
    if names is None:
        return int(tensor.nbytes)
    return sum(_nbytes(getattr(tensor, name)) for name in names()[0])


def _build(case_id: str, count: int, size: int, device: Device) -> Trial:
    case = next(case for case in OPTIMIZERS if case.id == case_id)
    return _OptimizerTrial(case, count, size, device)
