"""Power of layers measured whole, beside what their kinds of work take of the sum of their kernels.

The power of products that run alone and of copies says what each kind of work draws; a whole layer says what they draw
together, with the gaps between them and at the clock that the power limit leaves to the mixture.
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
    """Layers whose power was read over a window, by how they were run; of several the last."""
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
