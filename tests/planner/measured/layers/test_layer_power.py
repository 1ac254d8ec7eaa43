"""Power of whole layers beside what their kinds of work take."""

from __future__ import annotations

import pytest

from planner.measured.device import measured_rates
from planner.measured.layers.layer_power import layer_powers
from planner.measured.rates import LayerRun
from tests.planner.measured.layers.synthetic.gpu import H200_LIKE
from tests.planner.measured.layers.synthetic.record import suite_record


def test_a_layer_draws_what_its_window_says_and_its_kinds_of_work_add_up() -> None:
    points = suite_record(H200_LIKE)

    powers = layer_powers(measured_rates(points), points)

    layer = powers[LayerRun(recipe="bf16-fsdp")]
    windows = {p.probe_id: p.power.mean_w for p in points if p.kind == "block" and p.power.mean_w is not None}
    assert layer.power_w.value == windows[layer.power_w.probe_ids[0]]
    assert layer.products_ratio + layer.attention_ratio + layer.memory_ratio == pytest.approx(1.0)
    assert 0.3 < layer.products_ratio < 0.9


def test_layers_without_a_window_have_no_power() -> None:
    points = [point for point in suite_record(H200_LIKE) if point.energy.window_s is None]

    assert layer_powers(measured_rates(points), points) == {}
