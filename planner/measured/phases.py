"""Kernel time of a point's forward and backward pass, by kind of work, from the kernels that a record holds.

Both uses start from these figures: their sum is the denominator of the composition ratio (`composition`), and each is
a column that whole steps are fitted to (`steps`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from planner.measured.kernels import COMPUTE, ELEMENT_BYTES, HIGH, attention_columns, product_seconds
from planner.measured.rates import MeasuredRates
from planner.measured.workloads import PointWork, Product
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
    end_products: float
    """Matrix products of the ends: output layer, heads."""
    end_traffic: float
    """Memory-bound work of the ends: loss, embedding."""

    @property
    def total(self) -> float:
        """All kinds of work."""
        return self.products + self.attention + self.traffic + self.end_products + self.end_traffic


def phase_seconds(rates: MeasuredRates, work: PointWork, recipe: str) -> tuple[PhaseSeconds, PhaseSeconds]:
    """Forward and backward phase of a point in a recipe of the probes.

    The two backward products of a layer take as long as two forward ones; with checkpointing the backward phase runs
    the layers' forward pass once more. What the record did not measure takes a nominal rate.
    """
    products, end_products = (_products_s(rates, listed, recipe) for listed in (work.products, work.edge_products))
    attention_forward, attention_backward = _attention_s(rates, work, recipe)
    pass_s = pass_seconds(rates, recipe)
    layer_traffic, end_traffic = work.element_passes * pass_s, work.edge_passes * pass_s
    again = 1.0 if work.recompute else 0.0
    backward_share = 1.0 - FORWARD_SHARE
    forward = PhaseSeconds(
        products=products,
        attention=attention_forward,
        traffic=FORWARD_SHARE * layer_traffic,
        end_products=end_products,
        end_traffic=FORWARD_SHARE * end_traffic,
    )
    backward = PhaseSeconds(
        products=(2.0 + again) * products,
        attention=attention_backward + again * attention_forward,
        traffic=(backward_share + again * FORWARD_SHARE) * layer_traffic,
        end_products=2.0 * end_products,
        end_traffic=backward_share * end_traffic,
    )
    return forward, backward


def pass_seconds(rates: MeasuredRates, recipe: str) -> float:
    """Time of one read or write of an element by memory-bound work, which keeps at least 16 bits per element."""
    element_bytes = max(ELEMENT_BYTES.get(COMPUTE.get(recipe, recipe), 2.0), 2.0)
    bandwidth = rates.memory_bytes_per_s.get("eager") or rates.copy_bytes_per_s
    return element_bytes / (bandwidth.value if bandwidth else NOMINAL_BYTES_PER_S)


def _products_s(rates: MeasuredRates, products: Sequence[Product], recipe: str) -> float:
    compute = COMPUTE.get(recipe, recipe)
    total_s = 0.0
    for product in products:
        kind = compute if product.low else HIGH.get(compute, compute)
        fit = rates.product_fits.get(kind)
        if fit is None:
            total_s += product.flop / _nominal(rates)
        else:
            total_s += product.count * product_seconds(fit, kind, product.m, product.n, product.k)
    return total_s


def _attention_s(rates: MeasuredRates, work: PointWork, recipe: str) -> tuple[float, float]:
    """Forward and backward of all layers."""
    if not work.attention_flop:
        return 0.0, 0.0
    compute = COMPUTE.get(recipe, recipe)
    fits = rates.attention_fits.get(HIGH.get(compute, compute))
    if fits is None:
        forward_s = work.attention_flop / _nominal(rates)
        return forward_s, FLASH_BACKWARD * forward_s
    columns = attention_columns(work.attention_flop, work.attention_tokens)
    forward_s, backward_s = (fit.seconds(columns, (work.attention_tokens,)) for fit in fits)
    return forward_s, backward_s


def _nominal(rates: MeasuredRates) -> float:
    """Some rate for kinds that were not measured; the anchors set its scale."""
    return max((best.value for best in rates.best_matmul_flop_per_s.values()), default=NOMINAL_FLOP_PER_S)
