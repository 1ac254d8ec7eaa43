"""Kernel time of a point's forward and backward pass, by kind of work, from the kernels of a record.

The times have two uses: their sum is the denominator of the composition ratio (`composition`), and each of them is a
column of the fit of whole steps (`steps`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from planner.lazy import dataclass
from planner.measured.clocks import clock_ratio_of
from planner.measured.kernels import COMPUTE, ELEMENT_BYTES, HIGH, attention_columns, product_seconds
from planner.measured.layers.traffic import memory_bandwidth
from planner.measured.layers.workloads import PointWork, Product
from planner.measured.rates import LayerRun, MeasuredRates
from planner.performance.compute import FLASH_BACKWARD, FORWARD_SHARE

NOMINAL_FLOP_PER_S = 1e12
"""Rate of products that is assumed if a record has none. Where it is used, only relative times within its column
matter."""
NOMINAL_BYTES_PER_S = 1e11
"""Bandwidth that is assumed if a record has none. As for `NOMINAL_FLOP_PER_S`, only relative times matter."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PhaseSeconds:
    """Seconds of one phase, by kind of work."""

    products: float
    """Matrix products of the layers."""
    attention: float
    """Attention of the layers."""
    traffic: float
    """Memory-bound work of the layers."""
    casts: float
    """Casts of the layers' operands to FP8."""
    end_products: float
    """Matrix products outside the layers: output layer, heads."""
    end_traffic: float
    """Memory-bound work outside the layers: loss, embedding."""

    @property
    def total(self) -> float:
        """Sum over all kinds of work."""
        return self.products + self.attention + self.traffic + self.casts + self.end_products + self.end_traffic


def phase_seconds(
    rates: MeasuredRates, work: PointWork, recipe: str, clock_hz: float | None = None
) -> tuple[PhaseSeconds, PhaseSeconds]:
    """Time of the forward and backward phase of a point, by kind of work, in a recipe of the probes.

    In the backward phase, each forward product has two counterparts with the same number of FLOP. With checkpointing,
    the backward phase runs the layers' forward pass once more. Kernels that the record did not measure take a nominal
    rate.

    Args:
        rates: rates of the same record.
        work: work of the point.
        recipe: recipe of the point.
        clock_hz: clock of the device while the point ran, with which arithmetic scales; None means the clock at which
            the rates hold.
    """
    products, end_products = (
        _products_s(rates, group, recipe, clock_hz) for group in (work.products, work.edge_products)
    )
    attention_forward, attention_backward = _attention_s(rates, work, recipe, clock_hz)
    layer_traffic = work.element_passes * pass_seconds(rates, recipe, compiled=work.compiled)
    end_traffic = work.edge_passes * pass_seconds(rates, recipe)
    casts = _casts_s(rates, work, recipe)
    reruns = 1.0 if work.recompute else 0.0
    backward_share = 1.0 - FORWARD_SHARE
    forward = PhaseSeconds(
        products=products[0],
        attention=attention_forward,
        traffic=FORWARD_SHARE * layer_traffic,
        casts=casts[0],
        end_products=end_products[0],
        end_traffic=FORWARD_SHARE * end_traffic,
    )
    backward = PhaseSeconds(
        products=products[1] + reruns * products[0],
        attention=attention_backward + reruns * attention_forward,
        traffic=(backward_share + reruns * FORWARD_SHARE) * layer_traffic,
        casts=casts[1] + reruns * casts[0],
        end_products=end_products[1],
        end_traffic=backward_share * end_traffic,
    )
    return forward, backward


def pass_seconds(rates: MeasuredRates, recipe: str, *, compiled: bool = False) -> float:
    """Time in which memory-bound work reads or writes one element, which is kept in at least 16 bits."""
    element_bytes = max(ELEMENT_BYTES.get(COMPUTE.get(recipe, recipe), 2.0), 2.0)
    bandwidth = memory_bandwidth(rates, element_bytes, compiled=compiled)
    return element_bytes / (bandwidth.value if bandwidth else copy_bytes_per_s(rates))


def copy_bytes_per_s(rates: MeasuredRates) -> float:
    """Bandwidth of plain copies; a nominal one if the record has none."""
    return rates.copy_bytes_per_s.value if rates.copy_bytes_per_s else NOMINAL_BYTES_PER_S


def _clock_slowdown(held_hz: Mapping[str, float], compute: str, clock_hz: float | None) -> float:
    """Time of arithmetic at a clock over its time at the clock for which its rates hold."""
    return clock_ratio_of(held_hz.get(compute), clock_hz) or 1.0


def _products_s(
    rates: MeasuredRates, products: Sequence[Product], recipe: str, clock_hz: float | None
) -> tuple[float, float]:
    """Forward and backward time of products; the gradients of input and weight permute the sizes of the product."""
    compute = COMPUTE.get(recipe, recipe)
    forward_s = backward_s = 0.0
    for product in products:
        kind = compute if product.low else HIGH.get(compute, compute)
        fit = rates.product_fits.get(kind)
        m, n, k = product.m, product.n, product.k
        if fit is None:
            forward_s += product.flop / _nominal(rates)
            backward_s += 2.0 * product.flop / _nominal(rates)
        else:
            factor = product.count * _clock_slowdown(rates.sustained_clock_hz, kind, clock_hz)
            of_input, of_weight = rates.gradient_ratios.get(kind, (1.0, 1.0))
            forward_s += factor * product_seconds(fit, kind, m, n, k)
            backward_s += factor * of_input * product_seconds(fit, kind, m, k, n)
            backward_s += factor * of_weight * product_seconds(fit, kind, n, k, m)
    return forward_s, backward_s


EAGER_CAST_BYTES = 33.0
"""Bytes of traffic of an eager cast to FP8 per 16-bit element, read plus written by each kernel: absolute 2 + 2,
maximum 2, to FP32 2 + 4, divide 4 + 4, clamp 4 + 4, to FP8 4 + 1 (`probes/precisions/linear/products.py`,
`quantise`)."""
FUSED_CAST_BYTES = {"fp8": 5.0, "fp8-rowwise": 3.0, "mxfp8": 3.0}
"""Bytes of traffic of a fused cast to FP8 per 16-bit element, by recipe. With one scale per tensor, an element is read
for the maximum, then read again and written. With a scale per row or block, it is read once and kept until it is
written."""
TURNED_BYTES = 2.0
"""Bytes of traffic per element of copying FP8 values into the other memory layout, in eager code."""


def _casts_s(rates: MeasuredRates, work: PointWork, recipe: str) -> tuple[float, float]:
    """Time of the forward and backward casts to FP8. Every product casts both of its operands anew.

    In eager code, the operands of the backward products are also copied into the other memory layout, except for the
    incoming gradient in the product that computes the gradient of the input.
    """
    if COMPUTE.get(recipe, recipe) not in HIGH:
        return 0.0, 0.0
    low = [product for product in work.products if product.low]
    inputs = sum(product.count * product.m * product.k for product in low)
    weights = sum(product.count * product.n * product.k for product in low)
    outputs = sum(product.count * product.m * product.n for product in low)
    turned_s = 0.0 if work.compiled else TURNED_BYTES * (inputs + weights + outputs) / copy_bytes_per_s(rates)
    element_s = _element_cast_s(rates, recipe, compiled=work.compiled)
    return element_s * (inputs + weights), element_s * (inputs + weights + 2.0 * outputs) + turned_s


def _element_cast_s(rates: MeasuredRates, recipe: str, *, compiled: bool) -> float:
    """Measured time of casting one element; if there is none, the traffic of the cast at the bandwidth of copies."""
    measured = rates.cast_s.get(LayerRun(recipe=recipe, compiled=compiled))
    if measured is not None:
        return measured.value
    moved = FUSED_CAST_BYTES.get(recipe, FUSED_CAST_BYTES["fp8"]) if compiled else EAGER_CAST_BYTES
    return moved / copy_bytes_per_s(rates)


def _attention_s(rates: MeasuredRates, work: PointWork, recipe: str, clock_hz: float | None) -> tuple[float, float]:
    """Forward and backward time of the attention of all layers."""
    if not work.attention_flop:
        return 0.0, 0.0
    compute = COMPUTE.get(recipe, recipe)
    high = HIGH.get(compute, compute)
    fits = rates.attention_fits.get(high)
    if fits is None:
        forward_s = work.attention_flop / _nominal(rates)
        return forward_s, FLASH_BACKWARD * forward_s
    columns = attention_columns(work.attention_flop, work.attention_tokens, work.attention_head)
    slowdown = _clock_slowdown(rates.attention_clock_hz, high, clock_hz)
    forward_s, backward_s = (
        slowdown * fit.seconds(columns, (work.attention_tokens, work.attention_head)) for fit in fits
    )
    return forward_s, backward_s


def _nominal(rates: MeasuredRates) -> float:
    """Stand-in rate for compute types that were not measured; the anchors set its scale."""
    return max((best.value for best in rates.best_matmul_flop_per_s.values()), default=NOMINAL_FLOP_PER_S)
