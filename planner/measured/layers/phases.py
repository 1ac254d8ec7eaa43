"""Kernel time of a point's forward and backward pass, by kind of work, from the kernels that a record holds.

Both uses start from these figures: their sum is the denominator of the composition ratio (`composition`), and each is
a column that whole steps are fitted to (`steps`).
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
"""Rate of products in a record without any; where it is used, only the shape of its column matters."""
NOMINAL_BYTES_PER_S = 1e11
"""Bandwidth in a record without one; the same holds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PhaseSeconds:
    """Seconds of one phase by kind of work."""

    products: float
    """Matrix products of the layers."""
    attention: float
    """Attention of the layers."""
    traffic: float
    """Memory-bound work of the layers."""
    casts: float
    """Casts of their operands to FP8."""
    end_products: float
    """Matrix products of the ends: output layer, heads."""
    end_traffic: float
    """Memory-bound work of the ends: loss, embedding."""

    @property
    def total(self) -> float:
        """All kinds of work."""
        return self.products + self.attention + self.traffic + self.casts + self.end_products + self.end_traffic


def phase_seconds(
    rates: MeasuredRates, work: PointWork, recipe: str, clock_hz: float | None = None
) -> tuple[PhaseSeconds, PhaseSeconds]:
    """Forward and backward phase of a point in a recipe of the probes.

    Backward, each product has two of the same arithmetic; with checkpointing the backward phase runs the layers'
    forward pass once more. What the record did not measure takes a nominal rate.

    Args:
        rates: of the same record.
        work: of the point.
        recipe: of the point.
        clock_hz: of the device while the point ran, which arithmetic follows; None: the one that the rates are for.
    """
    products, end_products = (
        _products_s(rates, listed, recipe, clock_hz) for listed in (work.products, work.edge_products)
    )
    attention_forward, attention_backward = _attention_s(rates, work, recipe, clock_hz)
    layer_traffic = work.element_passes * pass_seconds(rates, recipe, compiled=work.compiled)
    end_traffic = work.edge_passes * pass_seconds(rates, recipe)
    casts = _casts_s(rates, work, recipe)
    again = 1.0 if work.recompute else 0.0
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
        products=products[1] + again * products[0],
        attention=attention_backward + again * attention_forward,
        traffic=(backward_share + again * FORWARD_SHARE) * layer_traffic,
        casts=casts[1] + again * casts[0],
        end_products=end_products[1],
        end_traffic=backward_share * end_traffic,
    )
    return forward, backward


def pass_seconds(rates: MeasuredRates, recipe: str, *, compiled: bool = False) -> float:
    """Time of one read or write of an element by memory-bound work, which keeps at least 16 bits per element."""
    element_bytes = max(ELEMENT_BYTES.get(COMPUTE.get(recipe, recipe), 2.0), 2.0)
    bandwidth = memory_bandwidth(rates, element_bytes, compiled=compiled)
    return element_bytes / (bandwidth.value if bandwidth else copy_bytes_per_s(rates))


def copy_bytes_per_s(rates: MeasuredRates) -> float:
    """Bandwidth of plain copies; a nominal one in a record without it."""
    return rates.copy_bytes_per_s.value if rates.copy_bytes_per_s else NOMINAL_BYTES_PER_S


def _slower(held_hz: Mapping[str, float], compute: str, clock_hz: float | None) -> float:
    """Time of arithmetic at a clock over that at the clock which its rates are for."""
    return clock_ratio_of(held_hz.get(compute), clock_hz) or 1.0


def _products_s(
    rates: MeasuredRates, products: Sequence[Product], recipe: str, clock_hz: float | None
) -> tuple[float, float]:
    """Forward and backward: the gradients of input and weight are products of the same sizes, permuted."""
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
            times = product.count * _slower(rates.sustained_clock_hz, kind, clock_hz)
            of_input, of_weight = rates.gradient_ratios.get(kind, (1.0, 1.0))
            forward_s += times * product_seconds(fit, kind, m, n, k)
            backward_s += times * of_input * product_seconds(fit, kind, m, k, n)
            backward_s += times * of_weight * product_seconds(fit, kind, n, k, m)
    return forward_s, backward_s


EAGER_CAST_BYTES = 33.0
"""Traffic of an eager cast to FP8 per element of 16 bits, kernel by kernel: absolute 2 + 2, maximum 2, to FP32 2 + 4,
divide 4 + 4, clamp 4 + 4, to FP8 4 + 1 (`probes/precisions/linear/products.py`, `quantise`)."""
FUSED_CAST_BYTES = {"fp8": 5.0, "fp8-rowwise": 3.0, "mxfp8": 3.0}
"""The same where it is fused: read for the maximum of the whole tensor or kept since the maximum of its row, then read
and written."""
TURNED_BYTES = 2.0
"""Of FP8 values that are copied into the other layout, per element, in eager code."""


def _casts_s(rates: MeasuredRates, work: PointWork, recipe: str) -> tuple[float, float]:
    """Forward and backward casts to FP8: every product casts both of its operands anew.

    Eager, each operand of the backward pass but the gradient that arrives is copied into the other layout as well.
    """
    if COMPUTE.get(recipe, recipe) not in HIGH:
        return 0.0, 0.0
    low = [product for product in work.products if product.low]
    inputs = sum(product.count * product.m * product.k for product in low)
    weights = sum(product.count * product.n * product.k for product in low)
    outputs = sum(product.count * product.m * product.n for product in low)
    turned_s = 0.0 if work.compiled else TURNED_BYTES * (inputs + weights + outputs) / copy_bytes_per_s(rates)
    element_s = _cast_s(rates, recipe, compiled=work.compiled)
    return element_s * (inputs + weights), element_s * (inputs + weights + 2.0 * outputs) + turned_s


def _cast_s(rates: MeasuredRates, recipe: str, *, compiled: bool) -> float:
    """Time of casting an element, as measured; else its least traffic at the bandwidth of copies."""
    measured = rates.cast_s.get(LayerRun(recipe=recipe, compiled=compiled))
    if measured is not None:
        return measured.value
    moved = FUSED_CAST_BYTES.get(recipe, FUSED_CAST_BYTES["fp8"]) if compiled else EAGER_CAST_BYTES
    return moved / copy_bytes_per_s(rates)


def _attention_s(rates: MeasuredRates, work: PointWork, recipe: str, clock_hz: float | None) -> tuple[float, float]:
    """Forward and backward of all layers."""
    if not work.attention_flop:
        return 0.0, 0.0
    compute = COMPUTE.get(recipe, recipe)
    high = HIGH.get(compute, compute)
    fits = rates.attention_fits.get(high)
    if fits is None:
        forward_s = work.attention_flop / _nominal(rates)
        return forward_s, FLASH_BACKWARD * forward_s
    columns = attention_columns(work.attention_flop, work.attention_tokens, work.attention_head)
    slower = _slower(rates.attention_clock_hz, high, clock_hz)
    forward_s, backward_s = (
        slower * fit.seconds(columns, (work.attention_tokens, work.attention_head)) for fit in fits
    )
    return forward_s, backward_s


def _nominal(rates: MeasuredRates) -> float:
    """Some rate for kinds that were not measured; the anchors set its scale."""
    return max((best.value for best in rates.best_matmul_flop_per_s.values()), default=NOMINAL_FLOP_PER_S)
