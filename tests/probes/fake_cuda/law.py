"""What the fake GPU takes for a point: the rates of an H200 in round numbers, so that estimates can be held to it."""

from __future__ import annotations

from probes.timing.trial import Point

RATES = {"float32": 45e12, "tf32": 330e12, "bfloat16": 600e12, "float16": 600e12}
"""FLOP/s of steps, as the review of the probe assumed for an H200 (no measurement)."""
FP8_EAGER, FP8_COMPILED, FP8_PRODUCT = 330e12, 800e12, 1200e12
BYTES_PER_S = 4e12
KERNEL_S = 4e-6
LAYER_S = 1e-4
POWER_W = {"gemm": 690.0, "block": 620.0, "end_to_end": 560.0, "verify": 560.0, "optimizer": 420.0, "attention": 600.0}
"""By kind of point; others draw 400 W."""
BUILD_S_PER_PARAM = 4e-11
BUILD_S = 0.05
MESSAGE_S, LINK_BYTES_PER_S = 1e-3, 4e11
"""Of a collective: latency, far longer than any, for fewer iterations; and bytes of the message over its time."""
PRODUCT_S = 2.5e-4
"""Of one of the products beside which collectives run."""
OVERLAP_S = {"product_alone": 0.020, "collective_alone": 0.030, "product_beside": 0.024, "collective_left": 0.010}
LATE_S = 0.05
"""What a rank waits for a late one."""
COMPILE_S = {"block": 12.0, "end_to_end": 18.0, "verify": 18.0, "memory_op": 4.0, "optimizer": 15.0}


def phases_of(point: Point) -> dict[str, float]:
    """Modelled seconds of one step, by phase; an empty name where the trial has no phases."""
    total = step_s(point)
    if point.kind in ("block", "attention", "memory_op"):
        return {"forward": total / 3.0, "backward": total * 2.0 / 3.0}
    if point.kind == "overlap":
        return OVERLAP_S
    if point.kind in ("end_to_end", "verify", "parallel_step"):
        update = 30.0 * _params(point) / BYTES_PER_S
        return {"forward": total / 3.0, "backward": total * 2.0 / 3.0, "optimizer": update}
    return {"optimizer" if point.kind == "optimizer" else "": total}


def step_s(point: Point) -> float:
    """Modelled seconds of one step without an update."""
    if point.kind == "idle":
        return 0.0
    if point.kind == "launch":
        return 200 * KERNEL_S
    if point.kind == "waiting":
        return LATE_S
    if point.kind == "collective":
        return collective_s(point)
    flop = point.counts.flop_hardware or point.counts.flop_model or 0.0
    if point.communication.world:  # of a step over several ranks, which share its work
        flop /= point.communication.world
    moved = point.counts.bytes_min or 0.0
    if point.kind == "optimizer":
        moved = 30.0 * _params(point)
    return KERNEL_S + flop / _rate(point) + moved / BYTES_PER_S + LAYER_S * (point.shape.layers or 0)


def collective_s(point: Point) -> float:
    """Modelled seconds of a collective."""
    return MESSAGE_S + (point.communication.bytes or 0.0) / LINK_BYTES_PER_S


def power_w(point: Point) -> float:
    """Modelled power while it runs."""
    return POWER_W.get(point.kind, 400.0)


def build_s(point: Point) -> float:
    """Modelled time to make the trial."""
    return BUILD_S + BUILD_S_PER_PARAM * _params(point)


def compile_s(point: Point) -> float:
    """Modelled time that the first step takes longer where it is compiled."""
    compiled = point.setup.compiled or point.setup.optimizer == "adamw-8bit"
    return COMPILE_S.get(point.kind, 0.0) if compiled else 0.0


def _params(point: Point) -> float:
    """Parameters; of whole models as many as their forward FLOP per token say."""
    if point.counts.params:
        return float(point.counts.params)
    if point.kind in ("end_to_end", "verify") and point.counts.flop_model:
        return point.counts.flop_model / 6.0 / (point.shape.tokens or 1)
    return 0.0


def _rate(point: Point) -> float:
    recipe = point.recipe
    if recipe.operand.startswith("float8"):
        if point.kind in ("gemm", "power"):
            return FP8_PRODUCT
        return FP8_COMPILED if point.setup.compiled else FP8_EAGER
    if recipe.tf32 and point.kind != "attention":
        return RATES["tf32"]
    return RATES[recipe.operand]
