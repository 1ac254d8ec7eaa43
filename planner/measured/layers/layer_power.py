"""Power of layers measured whole, with the share of each kind of work in the sum of their kernels.

Products and copies that run alone show the power of each kind of work. A whole layer shows their combined power,
including the gaps between kernels, at the clock that the power limit allows for the mixture.
"""

from __future__ import annotations

from collections.abc import Sequence

from planner.measured.kernels import usable
from planner.measured.layers.composition import composed_seconds
from planner.measured.layers.phases import phase_seconds
from planner.measured.layers.power import measured_power
from planner.measured.layers.workloads import work_of
from planner.measured.rates import LayerPower, LayerRun, MeasuredRates
from planner.records.measurement import Measurement


def layer_powers(rates: MeasuredRates, points: Sequence[Measurement]) -> dict[LayerRun, LayerPower]:
    """Power of layers that was read over a window, by how they were run; the last point of each kind counts."""
    powers = {}
    for point in usable(points, "block"):
        recipe, work, power = point.setup.recipe or "", work_of(point), measured_power(point)
        composed = composed_seconds(rates, work, recipe) if work else None
        if work is None or power is None or composed is None:
            continue
        phases, total_s = phase_seconds(rates, work, recipe), sum(composed)
        products = sum(phase.products for phase in phases) / total_s
        attention = sum(phase.attention for phase in phases) / total_s
        powers[LayerRun.of(point.setup)] = LayerPower(
            power_w=power, products_ratio=products, attention_ratio=attention, memory_ratio=1.0 - products - attention
        )
    return powers
