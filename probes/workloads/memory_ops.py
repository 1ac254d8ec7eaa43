"""Memory-bound operations, eager and compiled: norms, rotary embedding, gated activation, loss, and casts to FP8."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from planner.lazy import dataclass
from planner.records.work import RunSetup, WorkCounts, WorkShape
from probes.device.clock import Mark
from probes.device.device import Device
from probes.precisions import recipe_by_id
from probes.precisions.interface import PrecisionRecipe
from probes.timing.trial import Point, PointGroup, ProbePlan, Trial, TrialOutcome
from probes.workloads.expected import group_s

Sizes = tuple[int, int]
"""Rows (tokens) and width."""
GPU_SIZES: Sizes = (8192, 8192)
CPU_SIZES: Sizes = (1024, 512)
GPU_VOCAB, CPU_VOCAB = 128256, 4096


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryOp:
    """One operation, with the passes over its input that fused forward and backward kernels need."""

    name: str
    passes: float
    """Reads and writes of `rows x width` elements, forward and backward, if each is one kernel."""
    backward: bool = True
    only_low: bool = False
    """Whether it is measured only in 16-bit types (casts to FP8)."""
    fuses: bool = True
    """False: compiling it shows nothing new, because it is one kernel or fuses like another operation here."""


OPS = (
    MemoryOp(name="rmsnorm", passes=5.0),
    MemoryOp(name="silu_mul", passes=8.0),
    MemoryOp(name="rope", passes=4.0, fuses=False),
    MemoryOp(name="residual", passes=3.0, backward=False, fuses=False),
    MemoryOp(name="cross_entropy", passes=4.0),
    MemoryOp(name="cast_fp8_tensorwise", passes=2.5, backward=False, only_low=True),
    MemoryOp(name="cast_fp8_rowwise", passes=1.5, backward=False, only_low=True, fuses=False),
)
"""Passes: norm reads 1 and writes 1 forward, reads 2 and writes 1 backward; SiLU·u reads 2 and writes 1, then reads 3
and writes 2; rotary reads 1 and writes 1 each way; cross-entropy reads the logits twice and writes their gradient,
which is read; casts read once (per row) or twice (tensorwise: maximum first) and write one byte."""


QUICK = ("rmsnorm", "silu_mul")
"""Operations that the quick suite measures."""


class MemoryOps:
    """The cost of work between matrix products."""

    name = "memory-ops"
    summary = "norms, rotary embedding, activation, loss, FP8 casts; eager and compiled"

    def groups(self, plan: ProbePlan) -> Sequence[PointGroup]:
        """Return one group per operation and mode; compiled ones come late, because each must be compiled first."""
        modes = (False, True) if plan.on_gpu and plan.suite != "quick" else (False,)
        return [group for compiled in modes for op in OPS for group in _group(plan, op, compiled=compiled)]


def _group(plan: ProbePlan, op: MemoryOp, *, compiled: bool) -> list[PointGroup]:
    """Return the precisions of one operation side by side; nothing if it is not measured."""
    if (op.only_low and not plan.on_gpu) or (plan.suite == "quick" and op.name not in QUICK):
        return []
    only_bf16 = op.only_low or compiled
    if compiled and not op.fuses and plan.suite != "thorough":
        return []
    names = ("bf16-autocast",) if only_bf16 else ("fp32", "bf16-autocast")
    points = [_point(plan, recipe, op, compiled) for recipe in plan.kernel_recipes if recipe.id in names]
    if not points:
        return []
    estimate_s = group_s(plan, points) if plan.on_gpu else 0.7 * len(points)
    name = f"{op.name}, compiled" if compiled else op.name
    return [PointGroup(name=name, points=points, estimate_s=estimate_s, late=compiled)]


def _point(plan: ProbePlan, recipe: PrecisionRecipe, op: MemoryOp, compiled: bool) -> Point:
    rows, width = GPU_SIZES if plan.on_gpu else CPU_SIZES
    if op.name == "cross_entropy":
        width = GPU_VOCAB if plan.on_gpu else CPU_VOCAB
        rows //= 2
    element = 4 if recipe.id == "fp32" else 2
    mode = "compiled" if compiled else "eager"
    return Point(
        probe_id=f"memory_op/{op.name}/{mode}/{recipe.id}",
        kind="memory_op",
        workload="memory-ops",
        recipe=recipe,
        setup=RunSetup(role=op.name, compiled=compiled, data_distribution="normal"),
        shape=WorkShape(tokens=rows, hidden=width),
        counts=WorkCounts(bytes_min=op.passes * rows * width * element),
        build=partial(_build, recipe.id, op, (rows, width), compiled),
        cap_s=0.4 if plan.on_gpu else None,
    )


def _functions(rows: int, width: int, device: Device, dtype: Any) -> dict[str, tuple[Callable[..., Any], list[Any]]]:
    """Return, by operation, its function and the arguments that get gradients."""
    import torch
    from torch.nn import functional as fn

    from probes.models.transformer import rotate
    from probes.precisions.linear.products import quantise

    def random(*shape: int) -> Any:
        return torch.randn(*shape, device=device.torch, dtype=torch.float32).to(dtype).requires_grad_()

    weight = torch.ones(width, device=device.torch, dtype=dtype)
    head = min(128, width)
    cos, sin = (torch.randn(rows, head, device=device.torch, dtype=dtype) for _ in range(2))
    labels = torch.randint(0, width, (rows,), device=device.torch)
    return {
        "rmsnorm": (lambda x: fn.rms_norm(x, (width,), weight), [random(rows, width)]),
        "silu_mul": (lambda x, y: fn.silu(x) * y, [random(rows, width), random(rows, width)]),
        "rope": (lambda x: rotate(x, cos, sin), [random(1, width // head, rows, head)]),
        "residual": (lambda x, y: x + y, [random(rows, width), random(rows, width)]),
        "cross_entropy": (lambda x: fn.cross_entropy(x.float(), labels), [random(rows, width)]),
        "cast_fp8_tensorwise": (lambda x: quantise(x, torch.float8_e4m3fn, None), [random(rows, width)]),
        "cast_fp8_rowwise": (lambda x: quantise(x, torch.float8_e4m3fn, 1), [random(rows, width)]),
    }


class _OpTrial:
    """The forward pass, and the backward pass if the operation has one."""

    flags: tuple[str, ...] = ()
    steps = 1

    def __init__(self, op: MemoryOp, function: Callable[..., Any], inputs: list[Any]) -> None:
        import torch

        self.op, self.function, self.inputs = op, function, inputs
        self.held_bytes = float(sum(tensor.nbytes for tensor in inputs))
        with torch.no_grad():
            out = function(*inputs)
        self.gradient = torch.randn_like(out) if op.backward else None

    def step(self, mark: Mark) -> None:
        """See `Trial.step`."""
        import torch

        if self.gradient is None:
            with torch.no_grad():
                self.function(*self.inputs)
            mark("forward")
            return
        out = self.function(*self.inputs)
        mark("forward")
        torch.autograd.grad(out, self.inputs, self.gradient)
        mark("backward")

    def outcome(self) -> TrialOutcome:
        """Return no further figures."""
        return TrialOutcome()


def _build(recipe_id: str, op: MemoryOp, sizes: Sizes, compiled: bool, device: Device) -> Trial:
    import torch

    dtype = getattr(torch, recipe_by_id(recipe_id).operand)
    function, inputs = _functions(*sizes, device, dtype)[op.name]
    trial = _OpTrial(op, function, inputs)
    if compiled:  # set after the first call, which has no gradient and would be compiled separately
        trial.function = torch.compile(function, dynamic=False)
    return trial
