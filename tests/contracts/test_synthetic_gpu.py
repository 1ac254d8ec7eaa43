"""Verification on GPUs whose law is known: what is predicted from small steps against what the law gives.

The law has what the model has not: tiles and waves, a cache, a host that runs ahead, a clock under a power limit.
"""

from __future__ import annotations

import numpy as np
import pytest

from planner.measured.device import measured_rates
from planner.measured.rates import Activity, ActivityKind, LayerRun
from tests.planner.measured.layers.synthetic.gpu import A100_LIKE, GPUS, H200_LIKE, SLOW_HOST, SyntheticGpu
from tests.planner.measured.layers.synthetic.record import suite_record, verified


@pytest.mark.parametrize("gpu", GPUS, ids=lambda gpu: gpu.name)
def test_steps_that_were_not_run_are_predicted_within_a_few_percent_in_time_and_energy(gpu: SyntheticGpu) -> None:
    checked = verified(gpu)
    time = np.abs([case.time_error for case in checked])
    energy = np.abs([case.energy_error for case in checked if case.energy_error is not None])

    assert len(time) >= 8
    assert np.median(time) < 0.03, checked
    assert max(time) < 0.08, checked
    assert len(energy) >= 8
    assert np.median(energy) < 0.03, checked
    assert max(energy) < 0.10, checked


def test_a_slow_host_is_seen_where_it_bounds_a_step_and_nowhere_else() -> None:
    fast, slow = ({(case.name, case.recipe): case for case in verified(gpu)} for gpu in (H200_LIKE, SLOW_HOST))
    short = ("llama-llama-3.2-1b-L16-s2048b1", "fp8")

    # 20 us for each of some 500 kernels of an eager FP8 layer, as a GPU needs 11 ms
    assert abs(slow[short].time_error) < 0.05
    assert abs(fast[short].time_error) < 0.05


@pytest.mark.parametrize("gpu", [H200_LIKE, A100_LIKE], ids=lambda gpu: gpu.name)
def test_rates_of_bursts_are_those_that_the_power_limit_sustains(gpu: SyntheticGpu) -> None:
    rates = measured_rates(suite_record(gpu))
    power = {point.probe_id: point for point in suite_record(gpu)}["power/bf16-autocast"]
    sustained = (power.counts.flop_model or 0.0) / (power.time.median_s or 1.0)

    # products alone hold the limit below the full clock; the best burst is faster than what is sustained
    assert rates.power_w[Activity(kind=ActivityKind.MATMUL, of="bf16")].value == pytest.approx(gpu.limit_w, rel=0.02)
    assert rates.best_matmul_flop_per_s["bf16"].value > 1.02 * sustained
    fit = rates.product_fits["bf16"]
    moved = 3 * 2.0 * 8192**2
    assert fit.seconds((2.0 * 8192**3, moved, 1.0), (8192, 8192, 8192)) == pytest.approx(power.time.median_s, rel=0.03)


def test_eager_and_compiled_layers_in_fp8_are_close_to_the_sum_of_their_kernels_each() -> None:
    rates = measured_rates(suite_record(H200_LIKE))
    eager, compiled = (rates.composition_ratio[LayerRun(recipe="fp8", compiled=mode)].value for mode in (False, True))

    # with 6 bytes of casts for each element, an eager layer took more than twice the sum
    assert 0.8 < eager < 1.25
    assert 0.8 < compiled < 1.25
