"""Layers measured whole, against the sum of the kernels that they are made of.

The sum of separately measured kernels is systematically shorter than a layer that was measured whole; the ratio of the
two is measured per recipe and carried along (`MeasuredRates.composition_ratio`). So the sum has to be right in how it
changes with shape, not in its absolute value.
"""

from __future__ import annotations

from collections.abc import Sequence

from planner.measured.kernels import COMPUTE, HIGH, log_mean, quiet_first, usable
from planner.measured.phases import phase_seconds
from planner.measured.rates import LayerRun, MeasuredRates, MeasuredValue
from planner.measured.workloads import PointWork, work_of
from planner.records.measurement import Measurement

GRADIENT_BYTES = {"fp32": 12.0, "tf32": 12.0, "fp16": 14.0, "bf16-autocast": 14.0, "bf16-pure": 6.0}
"""Traffic of a weight gradient per parameter: written, read and added to the accumulated one; 12 where not listed."""
CAST_BYTES = 6.0
"""FP8: each operand of the three products is read in 16 bits for its maximum and its cast, and written in 8."""


def composed_seconds(rates: MeasuredRates, work: PointWork, recipe: str) -> tuple[float, float] | None:
    """Forward and backward time of a point's work as the sum of its kernels; None where a kernel was not measured."""
    compute = COMPUTE.get(recipe)
    if compute is None or rates.copy_bytes_per_s is None or not _measured(rates, work, compute):
        return None
    forward, backward = phase_seconds(rates, work, recipe)
    casts_s = _cast_elements(work, compute) * CAST_BYTES / rates.copy_bytes_per_s.value
    gradients_s = work.weights * GRADIENT_BYTES.get(recipe, 12.0) / rates.copy_bytes_per_s.value
    again = 1.0 if work.recompute else 0.0
    return forward.total + casts_s / 3.0, backward.total + gradients_s + (2.0 + again) * casts_s / 3.0


def _measured(rates: MeasuredRates, work: PointWork, compute: str) -> bool:
    high = HIGH.get(compute, compute)
    attention = not work.attention_flop or high in rates.attention_fits
    return compute in rates.product_fits and high in rates.product_fits and attention


def _cast_elements(work: PointWork, compute: str) -> float:
    """Elements of the operands that are cast to FP8, over the three products of each layer."""
    if compute not in HIGH:
        return 0.0
    return sum(p.count * (p.m * p.k + p.m * p.n + p.n * p.k) for p in work.products if p.low)


def composition_ratios(rates: MeasuredRates, points: Sequence[Measurement]) -> dict[LayerRun, MeasuredValue]:
    """Layers measured whole over the sum of their kernels, by how they were run."""
    ratios: dict[LayerRun, list[tuple[float, str]]] = {}
    for point in quiet_first(usable(points, "block")):
        recipe, work = point.setup.recipe or "", work_of(point)
        composed = composed_seconds(rates, work, recipe) if work else None
        if composed and point.time.median_s:
            run = LayerRun(
                recipe=recipe, compiled=bool(point.setup.compiled), recomputed=point.setup.recompute == "full"
            )
            ratios.setdefault(run, []).append((point.time.median_s / sum(composed), point.probe_id))
    return {run: _mean(listed) for run, listed in ratios.items()}


def _mean(ratios: Sequence[tuple[float, str]]) -> MeasuredValue:
    value, spread = log_mean([ratio for ratio, _ in ratios])
    return MeasuredValue(value=value, relative_sd=spread, probe_ids=tuple(probe_id for _, probe_id in ratios))
