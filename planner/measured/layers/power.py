"""Mean power by activity, from the energy windows of a record."""

from __future__ import annotations

from collections.abc import Sequence
from math import log

from planner.measured.kernels import COMPUTE, USUAL_HEAD
from planner.measured.rates import Activity, ActivityKind, AttentionPower, MeasuredRates, MeasuredValue
from planner.records.measurement import Measurement

TWO_SOURCES_SD, SINGLE_SOURCE_SD = 0.02, 0.10
"""Relative standard deviations of a mean power: if energy counter and power field agree, and if only one was read."""


def measured_powers(points: Sequence[Measurement]) -> dict[Activity, MeasuredValue]:
    """Mean power by activity; windows that were too short or inconsistent are left out."""
    powers: dict[Activity, MeasuredValue] = {}
    for point in points:
        activity, power = _activity(point), measured_power(point)
        if activity is not None and power is not None:
            powers[activity] = power
    return powers


def attention_powers(points: Sequence[Measurement]) -> dict[str, tuple[AttentionPower, ...]]:
    """Power of attention that was read over an energy window, by compute type."""
    powers: dict[str, tuple[AttentionPower, ...]] = {}
    for point in points:
        power, compute = measured_power(point), COMPUTE.get(point.setup.recipe or "")
        if point.kind == "attention" and power is not None and compute is not None:
            window = AttentionPower(
                head_dim=float(point.shape.head_dim or USUAL_HEAD),
                power_w=power,
                clock_hz=point.device_state.sm_clock_median_hz,
            )
            powers[compute] = (*powers.get(compute, ()), window)
    return powers


def attention_power(rates: MeasuredRates, compute: str, head_dim: float) -> AttentionPower | None:
    """Power of attention at the nearest measured head size; None if none was read in this compute type.

    FP16 falls back to BF16, because both do the same arithmetic and draw the same power.
    """
    windows = rates.attention_power.get(compute) or (rates.attention_power.get("bf16", ()) if compute == "fp16" else ())
    return min(windows, key=lambda window: abs(log(window.head_dim / head_dim)), default=None)


def measured_power(point: Measurement) -> MeasuredValue | None:
    """Mean power over a point's window; None if it has no window, or one that was too short or inconsistent."""
    if point.power.mean_w is None or point.energy.quality in ("inconsistent", "short"):
        return None
    sd = SINGLE_SOURCE_SD if point.energy.quality == "single" else TWO_SOURCES_SD
    return MeasuredValue(value=point.power.mean_w, relative_sd=sd, probe_ids=(point.probe_id,))


def _activity(point: Measurement) -> Activity | None:
    """Activity that a window's power belongs to; None if it is not an activity that plans use."""
    role, recipe = point.setup.role, point.setup.recipe
    if point.kind == "idle":
        return Activity(kind=ActivityKind.IDLE if role == "bare" else ActivityKind.CONTEXT)
    if point.kind == "power" and role == "copy":
        return Activity(kind=ActivityKind.MEMORY)
    if point.kind == "power":
        return Activity(kind=ActivityKind.MATMUL, of=COMPUTE.get(recipe or "", recipe))
    if point.kind == "block" and point.setup.recompute == "none" and not point.setup.compiled:
        return Activity(kind=ActivityKind.BLOCK, of=recipe)
    return Activity(kind=ActivityKind.OPTIMIZER, of=point.setup.optimizer) if point.kind == "optimizer" else None
