"""The record that the default suite would write on a made-up GPU, and a whole verification on it."""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache

import numpy as np

from planner.measured.device import measured_rates
from planner.measured.kernels import COMPUTE
from planner.measured.layers.host import with_host
from planner.measured.rates import MeasuredRates
from planner.records.figures import DeviceState, EnergyUse, PowerDraw, Sampling, TimeStatistics
from planner.records.machine import DeviceIdentity
from planner.records.measurement import Measurement
from probes.device.device import Device
from probes.precisions import RECIPES
from probes.timing.trial import Point, ProbePlan
from probes.verify.cases import VerifyCase, anchors, targets
from probes.verify.predict import predict
from probes.workloads import WORKLOADS
from probes.workloads.end_to_end import model_point
from tests.planner.measured.layers.synthetic.gpu import SyntheticGpu
from tests.planner.measured.layers.synthetic.running import Phases, Ran, burst, sustained
from tests.planner.measured.layers.synthetic.single import Kernel, attention, nothing, product, stream
from tests.planner.measured.layers.synthetic.tape import CAST_PASSES, FUSED_CAST_PASSES
from tests.planner.measured.layers.synthetic.work import params_of, phases_of

NOISE = 0.003
"""Standard deviation of the logarithm of a measured time or power."""
HELD_UP = 0.15
"""Standard deviation of what holds a host up, whose absolute value counts."""
STEPS = ("block", "end_to_end", "verify")
"""Kinds of points that are timed without a pause, at the clock that the power limit allows."""
NOT_SIMULATED = ("optimizer", "canary")
"""Workloads that no prediction of a step rests on: their updates are fitted to anchors."""
OPERATION_PASSES = {
    "rmsnorm": ((2.0, 1.0), (2.0, 1.0, 1.0)),
    "silu_mul": ((2.0, 3.0), (3.0, 5.0)),
    "rope": ((1.0, 2.0, 2.0, 2.0, 3.0), (1.0, 2.0, 2.0, 2.0, 3.0)),
    "residual": ((3.0,), ()),
    "cross_entropy": ((3.0, 4.0), (4.0, 3.0)),
}
"""Reads and writes of the kernels of an eager operation, forward and backward, in elements of the input's type."""


def plan_of(gpu: SyntheticGpu) -> ProbePlan:
    """What the default suite would be given on the GPU."""
    device = Device(
        kind="cuda", index=0, name=gpu.name, uuid=None, capability=gpu.capability, memory_bytes=gpu.memory_bytes,
        sm_count=gpu.sm_count, l2_bytes=gpu.l2_bytes,
    )  # fmt: skip
    recipes = tuple(
        recipe
        for recipe in RECIPES
        if device.capability >= recipe.min_capability and COMPUTE.get(recipe.id) in gpu.flop_per_s
    )
    return ProbePlan(device=device, suite="default", recipes=recipes, has_sensor=True)


def suite_points(plan: ProbePlan) -> list[Point]:
    """What the default suite measures, each point once."""
    points = [
        point
        for workload in WORKLOADS
        if workload.name not in NOT_SIMULATED
        for group in workload.groups(plan)
        for point in group.points
    ]
    return list({point.probe_id: point for point in points}.values())


def measured(gpu: SyntheticGpu, point: Point) -> Measurement:
    """The line that the probe would write for a point."""
    graph = point.kind in ("gemm", "power", "attention") or point.setup.role == "graph"
    if point.kind == "idle":
        return _line(gpu, point, None, power_w=gpu.idle_w)
    phases = _kernels(gpu, point)
    if point.energy_s or point.kind in STEPS:
        ran = sustained(gpu, phases, graph=graph)
        line = _line(gpu, point, ran, power_w=ran.power_w if point.energy_s else None)
        return replace(line, time=replace(line.time, host_median_s=None if graph else _launching_s(gpu, point, phases)))
    return _line(gpu, point, burst(gpu, phases, graph=graph), power_w=None)


def _launching_s(gpu: SyntheticGpu, point: Point, phases: Phases) -> float:
    """What the host of a busy virtual machine takes to launch a step: at times more than it needs, never less."""
    held_up = abs(float(np.log(_Noise(f"{gpu.name}/{point.probe_id}/host")(1.0)))) / NOISE
    return (1.0 + HELD_UP * held_up) * sum(kernel.host_s for kernels in phases.values() for kernel in kernels)


def _kernels(gpu: SyntheticGpu, point: Point) -> Phases:
    if point.kind in ("block", "end_to_end", "verify"):
        return phases_of(gpu, point)
    if point.kind in ("gemm", "power") and point.setup.role != "copy":
        return {"forward": [_product(gpu, point)]}
    if point.kind == "attention":
        return _attention(gpu, point)
    if point.kind == "memory_op":
        return _operation(gpu, point)
    if point.kind == "launch":
        return {"forward": [nothing(gpu.launch_s)]}
    return {"forward": [stream(gpu, point.counts.bytes_min or 0.0)]}


def _product(gpu: SyntheticGpu, point: Point) -> Kernel:
    m, n, k = (float(size or 0) for size in (point.shape.gemm_m, point.shape.gemm_n, point.shape.gemm_k))
    rows, inner, columns = {"dgrad": (m, n, k), "wgrad": (n, m, k)}.get(point.setup.role or "", (m, k, n))
    return product(gpu, COMPUTE[point.recipe.id], rows, columns, inner)


def _attention(gpu: SyntheticGpu, point: Point) -> Phases:
    shape = point.shape
    batch, heads, d, length = (float(s or 0) for s in (shape.micro_batch, shape.heads, shape.head_dim, shape.seq_len))
    operand = point.recipe.operand
    return {
        "forward": [attention(gpu, operand, batch, heads, d, length)],
        "backward": [attention(gpu, operand, batch, heads, d, length, backward=True)],
    }


def _operation(gpu: SyntheticGpu, point: Point) -> Phases:
    rows, width, role = float(point.shape.tokens or 0), float(point.shape.hidden or 0), point.setup.role or ""
    element = 4.0 if point.recipe.operand == "float32" else 2.0
    compiled, host_s = bool(point.setup.compiled), gpu.operation_s
    if role.startswith("cast_fp8"):
        passes = FUSED_CAST_PASSES if compiled else CAST_PASSES
        return {"forward": [stream(gpu, each * rows * width, host_s=host_s) for each in passes]}
    if compiled:
        least = (point.counts.bytes_min or 0.0) * 1.05
        return {"forward": [stream(gpu, 0.4 * least, host_s=host_s)], "backward": [stream(gpu, 0.6 * least)]}
    forward, backward = OPERATION_PASSES[role]
    phases: Phases = {"forward": [stream(gpu, each * element * rows * width, host_s=host_s) for each in forward]}
    if backward:
        phases["backward"] = [stream(gpu, each * element * rows * width, host_s=host_s) for each in backward]
    return phases


def _line(gpu: SyntheticGpu, point: Point, ran: Ran | None, power_w: float | None) -> Measurement:
    """A line with the keys that the probe fills in; phases are of the same regime as the whole."""
    noisy = _Noise(f"{gpu.name}/{point.probe_id}")
    time, counts = TimeStatistics(), point.counts
    if ran is not None:
        total_s, sd = noisy(ran.total_s), 1.96 * NOISE
        phases = {name: noisy(seconds) for name, seconds in ran.phases_s.items()}
        time = TimeStatistics(
            median_s=total_s,
            ci_low_s=total_s * (1.0 - sd),
            ci_high_s=total_s * (1.0 + sd),
            forward_median_s=phases.get("forward"),
            backward_median_s=phases.get("backward"),
            optimizer_median_s=phases.get("optimizer"),
        )
    if point.kind in ("end_to_end", "verify"):
        counts = replace(counts, params=params_of(point.shape))
    watts = None if power_w is None else noisy(power_w)
    return Measurement(
        suite_version=1,
        run_id="synthetic-run",
        probe_id=point.probe_id,
        seq=0,
        status="ok",
        kind=point.kind,
        setup=replace(
            point.setup,
            workload=point.workload,
            precision=point.recipe.precision if point.records_recipe else None,
            recipe=point.recipe.id if point.records_recipe else None,
        ),
        shape=point.shape,
        counts=counts,
        time=time,
        sampling=Sampling(
            regime="sustained" if point.energy_s or point.kind in STEPS else "burst", quality="ok", samples=50
        ),
        power=PowerDraw(mean_w=watts),
        energy=EnergyUse(
            j_per_iteration=watts * time.median_s if watts and time.median_s else None,
            window_s=point.energy_s or None,
            quality="ok" if point.energy_s else None,
        ),
        device_state=DeviceState(
            sm_clock_median_hz=None if ran is None else ran.clock_ratio * gpu.boost_hz, power_limit_w=gpu.limit_w
        ),
        device=DeviceIdentity(kind="cuda", name=gpu.name, sm_count=gpu.sm_count, l2_bytes=gpu.l2_bytes),
    )


class _Noise:
    """The same small errors for a point every time."""

    def __init__(self, name: str) -> None:
        self._random = np.random.default_rng(zlib.crc32(name.encode()))

    def __call__(self, value: float) -> float:
        return float(value * np.exp(NOISE * self._random.standard_normal()))


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """One target: predicted, and as the law has it."""

    name: str
    recipe: str
    time_error: float
    """Predicted over true, less 1."""
    energy_error: float | None


@cache
def suite_record(gpu: SyntheticGpu) -> tuple[Measurement, ...]:
    """All lines of the default suite."""
    return tuple(measured(gpu, point) for point in suite_points(plan_of(gpu)))


@cache
def verified(gpu: SyntheticGpu) -> tuple[Checked, ...]:
    """Every target of a verification, predicted from the record and the anchors of its family."""
    plan, record = plan_of(gpu), list(suite_record(gpu))
    small = {case: measured(gpu, model_point(plan, case.model, case.recipe)) for case in anchors(plan)}
    points = [*record, *small.values()]
    rates = with_host(measured_rates(points), points)
    return tuple(_checked(gpu, plan, case, small, rates) for case in targets(plan))


def _checked(
    gpu: SyntheticGpu, plan: ProbePlan, case: VerifyCase, small: Mapping[VerifyCase, Measurement], rates: MeasuredRates
) -> Checked:
    point = replace(model_point(plan, case.model, case.recipe), kind="verify")
    family = [(line, None) for anchor, line in small.items() if anchor.family == case.family]
    known = replace(point, counts=replace(point.counts, params=params_of(point.shape)))
    figures = predict(known, None, family, rates)
    truth = sustained(gpu, phases_of(gpu, point)) if point.energy_s else burst(gpu, phases_of(gpu, point))
    return Checked(
        name=case.model.name,
        recipe=case.recipe.id,
        time_error=(figures.time_s or 0.0) / truth.total_s - 1.0,
        energy_error=None if figures.energy_j is None else figures.energy_j / (truth.power_w * truth.total_s) - 1.0,
    )
