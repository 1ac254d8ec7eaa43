"""Layers measured whole, compared with the sum of their kernels.

The sum of separately measured kernels is systematically shorter than a layer measured whole. The ratio of the two is
measured per recipe and applied in plans (`MeasuredRates.composition_ratio`). The sum therefore only has to change
correctly with shape; its absolute value does not matter.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import exp, log, sqrt

from planner.lazy import dataclass
from planner.measured.clocks import clock_ratio, median_clock_hz
from planner.measured.kernels import COMPUTE, HIGH, quiet_first, usable
from planner.measured.layers.phases import phase_seconds
from planner.measured.layers.workloads import PointWork, work_of
from planner.measured.rates import LayerRun, MeasuredRates, MeasuredValue
from planner.records.measurement import Measurement

GRADIENT_BYTES = {"fp32": 12.0, "tf32": 12.0, "fp16": 14.0, "bf16-autocast": 14.0, "bf16-pure": 6.0}
"""Bytes of traffic of a weight gradient per parameter: it is written, read and added to the accumulated gradient; 12 if
not listed."""


def composed_seconds(
    rates: MeasuredRates, work: PointWork, recipe: str, clock_hz: float | None = None
) -> tuple[float, float] | None:
    """Forward and backward time of a point's work as the sum of its kernels; None if a kernel was not measured.

    Args:
        rates: rates of the same record.
        work: work of the point.
        recipe: recipe of the point.
        clock_hz: clock of the device while the point ran; None means the clock at which the rates hold.
    """
    compute = COMPUTE.get(recipe)
    if compute is None or rates.copy_bytes_per_s is None or not _measured(rates, work, compute):
        return None
    forward, backward = phase_seconds(rates, work, recipe, clock_hz)
    gradients_s = work.weights * GRADIENT_BYTES.get(recipe, 12.0) / rates.copy_bytes_per_s.value
    return forward.total, backward.total + gradients_s


def _measured(rates: MeasuredRates, work: PointWork, compute: str) -> bool:
    high = HIGH.get(compute, compute)
    attention = not work.attention_flop or high in rates.attention_fits
    return compute in rates.product_fits and high in rates.product_fits and attention


@dataclass(frozen=True, slots=True, kw_only=True)
class _Layer:
    """A point of whole layers, compared with the sum of their kernels."""

    probe_id: str
    log_ratio: float
    composed_s: float
    """Forward plus backward time as the sum of the kernels."""


PRIOR_SD, PRIOR_LAYERS = 0.1, 2.0
"""Prior standard deviation of the log ratio between layers of one recipe, and the number of layers that the prior
counts for. It is a scaled inverse chi-squared prior (Gelman et al. 2013, Bayesian Data Analysis, section 3.2) for
records with few layers. The standard deviation was 0.1 on an H200."""


def composition_ratios(rates: MeasuredRates, points: Sequence[Measurement]) -> dict[LayerRun, MeasuredValue]:
    """Time of layers measured whole over the sum of their kernels, by how they were run.

    Layers are weighted by the time of their kernels. Small layers wait for the host; that wait is a separate time, not
    a factor that larger layers would share.
    """
    layers: dict[LayerRun, list[_Layer]] = {}
    blocks = quiet_first(usable(points, "block"))
    for point in blocks:
        work = work_of(point)
        layer = _layer(rates, point, work, blocks) if work else None
        if layer is not None:
            layers.setdefault(LayerRun.of(point.setup), []).append(layer)
    return {run: _mean(run_layers) for run, run_layers in layers.items()}


def layer_clocks_hz(points: Sequence[Measurement]) -> dict[LayerRun, float]:
    """Clock that layers sustain, by how they were run: that of the longest, since small ones may wait for the host."""
    clocks = {}
    for point in sorted(quiet_first(usable(points, "block")), key=lambda point: point.time.median_s or 0.0):
        clock_hz = median_clock_hz([point], lambda _: True)
        if clock_hz is not None:
            clocks[LayerRun.of(point.setup)] = clock_hz
    return clocks


def _layer(rates: MeasuredRates, point: Measurement, work: PointWork, blocks: Sequence[Measurement]) -> _Layer | None:
    """Compare a layer's time with the sum of its kernels, which holds at the clock that products sustain.

    A burst is first converted to the clock that layers of its recipe sustain.
    """
    recipe, clock_hz = point.setup.recipe or "", point.device_state.sm_clock_median_hz
    composed = composed_seconds(rates, work, recipe)
    if composed is None or not point.time.median_s:
        return None
    held_hz = median_clock_hz(blocks, lambda other: other.setup.recipe == recipe)
    clock_slowdown = 1.0
    if clock_ratio(point, held_hz) is not None:
        held_s, burst_s = (composed_seconds(rates, work, recipe, clock) for clock in (held_hz, clock_hz))
        clock_slowdown = sum(held_s or (1.0,)) / sum(burst_s or (1.0,))
    composed_s = sum(composed)
    return _Layer(
        probe_id=point.probe_id, log_ratio=log(clock_slowdown * point.time.median_s / composed_s), composed_s=composed_s
    )


def _mean(layers: Sequence[_Layer]) -> MeasuredValue:
    total_s = sum(layer.composed_s for layer in layers)
    mean = sum(layer.log_ratio * layer.composed_s for layer in layers) / total_s
    variance = sum((layer.log_ratio - mean) ** 2 * layer.composed_s for layer in layers) / total_s
    pooled_squares = PRIOR_LAYERS * PRIOR_SD**2 + len(layers) * variance
    return MeasuredValue(
        value=exp(mean), relative_sd=sqrt(pooled_squares / (PRIOR_LAYERS + len(layers) - 1)),
        probe_ids=tuple(layer.probe_id for layer in layers),
    )  # fmt: skip
