"""Expected time of points on a GPU, by which a suite's time budget is divided.

```
build │ compile │ memory: 3 steps │ warm-up │ rounds, up to the cap │ reheat, settle, energy window
```

A step's time is its FLOP and bytes over nominal rates of whole steps, scaled from Hopper to the device by its peak
rates. The rates are round figures for H200: 60 % of the dense BF16 peak, two thirds of the TF32 and FP32 peaks, and
eager FP8 below BF16 because its casts limit it. One H200 took 339 s for points that were expected to take 343 s.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache

from planner.hardware.catalogue import match_device
from probes.device.device import Device
from probes.timing.graphs import LONG_S
from probes.timing.regime import SUSTAINED_KINDS, SUSTAINED_SETTLE_S, sustained_s
from probes.timing.trial import Point, ProbePlan

STEP_FLOP_PER_S = {"float32": 45e12, "tf32": 330e12, "float16": 600e12, "bfloat16": 600e12}
"""Rates of steps on Hopper, by type of the operands: two thirds of FP32's and TF32's peak, 60 % of BF16's."""
FP8_EAGER_FLOP_PER_S, FP8_COMPILED_FLOP_PER_S, FP8_PRODUCT_FLOP_PER_S = 330e12, 800e12, 1200e12
FP32_ATTENTION_FLOP_PER_S = 25e12
"""Rate of the memory-efficient kernel, which does not use TF32."""
STEP_BYTES_PER_S = 4e12
HOPPER_PEAK_FLOP_PER_S = {"fp32": 67e12, "tf32": 494.5e12, "fp16": 989e12, "bf16": 989e12, "fp8": 1979e12}
H200_BYTES_PER_S, HOPPER_SM_COUNT = 4.8e12, 132
"""Peaks and processor count from which the rates above are scaled. GPUs differ in the ratio of these peaks: an RTX 4090
has more FP32 than Hopper, but a sixth of its BF16."""
LAYER_S = 1.5e-3
"""Least time of a layer's eager forward and backward pass, which launch about 150 kernels."""
KERNEL_S = 5e-6

BUILD_S = 0.08
"""Time for random operands and the first call of a kernel."""
BUILD_S_PER_PARAM = 2e-10
"""Time for drawing, converting and copying weights."""
TRANSFORMERS_S = 0.7
"""Time for building a model of that library."""
COMPILE_S = {"block": 20.0, "end_to_end": 25.0, "verify": 25.0, "memory_op": 4.0}
OPTIMIZER_BYTES_PER_PARAM = 34.0
"""Traffic of AdamW in FP32 with clipping: parameters, gradients and two moments, read and written."""
MEMORY_STEPS = 3
GRAPH_STEPS, SHORT_STEPS = 4, 86
"""Steps before timing that show whether a kernel is short, and steps that capture a short one in a graph."""
SETTLE_S, REHEAT_S = 1.2, 1.0
"""Time before an energy window."""
START_S = 50.0
"""Time for imports, the check of each recipe, heating the device, and canaries."""

GPU_CAPS_S = {"gemm": 0.2, "block": 0.2, "end_to_end": 0.2, "verify": 0.2, "parallel_step": 0.2}
"""Longest measured time by kind of point, unless the point sets its own; 0.4 s if not listed. Whole steps are timed
again in a sustained run, and their bursts are kept for comparison."""
OTHER_CAP_S = 0.4
THOROUGH_PATIENCE = 5.0


def gpu_cap_s(point: Point, suite: str) -> float:
    """Return the longest measured time of a point on a GPU."""
    cap_s = point.cap_s or GPU_CAPS_S.get(point.kind, OTHER_CAP_S)
    return cap_s * (THOROUGH_PATIENCE if suite == "thorough" else 1.0)


def warmup_s(cap_s: float) -> float:
    """Return the time to warm up a trial on a GPU."""
    return min(0.3, cap_s / 3.0)


def group_s(plan: ProbePlan, points: Iterable[Point]) -> float:
    """Return the expected time of points on a GPU; points known not to run take none."""
    return sum(point_s(plan, point) for point in points if point.unsupported is None)


def point_s(plan: ProbePlan, point: Point) -> float:
    """Return the expected time of one point."""
    step = step_s(plan.device, point)
    cap_s = gpu_cap_s(point, plan.suite)
    steps = (MEMORY_STEPS if point.memory else 0) + (GRAPH_STEPS if point.graph else 0)
    if point.graph and step < LONG_S:
        steps += SHORT_STEPS
    measured = max(warmup_s(cap_s), 3.0 * step) + cap_s + step
    window = SETTLE_S + REHEAT_S + point.energy_s if point.energy_s else 0.0
    if not window and point.kind in SUSTAINED_KINDS:
        window = SUSTAINED_SETTLE_S + sustained_s(step)
    return _build_s(point) + steps * step + measured + window


def _build_s(point: Point) -> float:
    library = TRANSFORMERS_S if point.needs == "transformers" else 0.0
    compile_s = COMPILE_S.get(point.kind, 0.0) if point.setup.compiled else 0.0
    return BUILD_S + BUILD_S_PER_PARAM * _params(point) + library + compile_s


def step_s(device: Device, point: Point) -> float:
    """Return the expected time of one step."""
    compute, memory = _scale(device, point.recipe.precision)
    flop = point.counts.flop_hardware or point.counts.flop_model or 0.0
    if point.kind == "parallel_step":
        flop /= point.communication.world or 1  # the ranks share the work
    moved = point.counts.bytes_min or 0.0
    if point.kind in ("optimizer", "end_to_end", "verify", "parallel_step"):
        moved += OPTIMIZER_BYTES_PER_PARAM * _params(point)
    work_s = flop / (_flop_per_s(point) * compute) + moved / (STEP_BYTES_PER_S * memory)
    return max(work_s, LAYER_S * (point.shape.layers or 0), KERNEL_S)


def _flop_per_s(point: Point) -> float:
    recipe = point.recipe
    if recipe.operand.startswith("float8"):
        if point.kind in ("gemm", "power"):
            return FP8_PRODUCT_FLOP_PER_S
        return FP8_COMPILED_FLOP_PER_S if point.setup.compiled else FP8_EAGER_FLOP_PER_S
    if point.kind == "attention" and recipe.operand == "float32":
        return FP32_ATTENTION_FLOP_PER_S
    return STEP_FLOP_PER_S["tf32" if recipe.tf32 else recipe.operand]


def _params(point: Point) -> float:
    """Return the number of parameters; for a whole model, an estimate from its FLOP per token."""
    if point.counts.params:
        return float(point.counts.params)
    whole = point.kind in ("end_to_end", "verify") and point.shape.hidden is not None
    return (point.counts.flop_model or 0.0) / 6.0 / (point.shape.tokens or 1) if whole else 0.0


@cache
def _scale(device: Device, precision: str) -> tuple[float, float]:
    """Return a device's arithmetic and traffic relative to Hopper, from its catalogue row or its processor count."""
    gpu = match_device(device.name, device.memory_bytes)
    if gpu is None:
        by_count = (device.sm_count or HOPPER_SM_COUNT) / HOPPER_SM_COUNT
        return by_count, by_count
    peaks = gpu.peak_flop_per_s
    known = [name for name in (precision, "bf16", "fp16", "fp32") if name in peaks and name in HOPPER_PEAK_FLOP_PER_S]
    compute = peaks[known[0]] / HOPPER_PEAK_FLOP_PER_S[known[0]]
    return compute, gpu.memory_bytes_per_s / H200_BYTES_PER_S
