"""Kernel time of a phase by kind of work, on rates that are written out."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from planner.measured.kernels import LinearFit
from planner.measured.layers.phases import pass_seconds, phase_seconds
from planner.measured.layers.workloads import PointWork, Product
from planner.measured.rates import MeasuredRates, MeasuredValue

FLOP_PER_S, ATTENTION_FLOP_PER_S, BYTES_PER_S = 1e12, 5e11, 1e9


def known(value: float) -> MeasuredValue:
    return MeasuredValue(value=value, relative_sd=0.0, probe_ids=())


def fit(seconds_per_flop: float, columns: int, dimensions: int) -> LinearFit:
    return LinearFit(
        coefficients=(seconds_per_flop,) + (0.0,) * (columns - 1),
        points=np.zeros((1, dimensions)),
        residuals=np.zeros(1),
        probe_ids=("p",),
        measurement_sd=0.0,
    )


RATES = MeasuredRates(
    gpu=None, device_name="x", run_id="r", date=None, torch_version=None, driver_version=None, matmul_flop_per_s={},
    operand_bytes_per_s={}, matmul_fixed_s={}, best_matmul_flop_per_s={}, attention_forward_flop_per_s={},
    attention_backward_flop_per_s={}, copy_bytes_per_s=known(BYTES_PER_S), memory_bytes_per_s={}, kernel_s=None,
    launch_s=None, optimizer_s_per_param={}, optimizer_state_bytes_per_param={}, power_w={}, composition_ratio={},
    product_fits={"bf16": fit(1 / FLOP_PER_S, 3, 3)},
    attention_fits={"bf16": (fit(1 / ATTENTION_FLOP_PER_S, 2, 1), fit(2.5 / ATTENTION_FLOP_PER_S, 2, 1))},
)  # fmt: skip
WORK = PointWork(
    products=(Product(m=100.0, n=100.0, k=100.0, count=5.0),),  # 5 x 2e6 FLOP: 10 us
    edge_products=(Product(m=100.0, n=50.0, k=100.0, low=False),),  # 1e6 FLOP: 1 us
    attention_flop=2e6,  # 4 us forward, 10 us backward
    attention_tokens=64.0,
    element_passes=1000.0,  # of 2 bytes: 2 us
    edge_passes=500.0,  # 1 us
    weights=0.0,
    layers=2.0,
    params=0.0,
    recompute=False,
)


def test_a_backward_pass_has_two_products_for_one_and_three_fifths_of_the_memory_traffic() -> None:
    forward, backward = phase_seconds(RATES, WORK, "bf16-autocast")

    assert (forward.products, backward.products) == pytest.approx((10e-6, 20e-6))
    assert (forward.attention, backward.attention) == pytest.approx((4e-6, 10e-6))
    assert (forward.traffic, backward.traffic) == pytest.approx((0.8e-6, 1.2e-6))
    assert (forward.end_products, backward.end_products) == pytest.approx((1e-6, 2e-6))
    assert (forward.end_traffic, backward.end_traffic) == pytest.approx((0.4e-6, 0.6e-6))
    assert (forward.total, backward.total) == pytest.approx((16.2e-6, 33.8e-6))


def test_checkpointing_runs_the_layers_forward_again_but_not_the_ends() -> None:
    forward, plain = phase_seconds(RATES, WORK, "bf16-autocast")
    _, again = phase_seconds(RATES, replace(WORK, recompute=True), "bf16-autocast")

    layers_forward = forward.products + forward.attention + forward.traffic
    assert again.total - plain.total == pytest.approx(layers_forward)
    assert (again.end_products, again.end_traffic) == (plain.end_products, plain.end_traffic)


def test_what_was_not_measured_takes_a_nominal_rate() -> None:
    bare = replace(RATES, product_fits={}, attention_fits={}, best_matmul_flop_per_s={"fp32": known(2e12)})

    forward, backward = phase_seconds(bare, WORK, "bf16-autocast")

    # the fastest product of any kind, 2 TFLOP/s; attention's backward pass has 2.5 times the FLOP
    assert forward.products == pytest.approx(5e-6)
    assert (forward.attention, backward.attention) == pytest.approx((1e-6, 2.5e-6))


@pytest.mark.parametrize(("recipe", "element_bytes"), [("fp32", 4), ("bf16-autocast", 2), ("fp8", 2), ("mxfp8", 2)])
def test_memory_bound_work_keeps_at_least_16_bits_per_element(recipe: str, element_bytes: int) -> None:
    assert pass_seconds(RATES, recipe) == pytest.approx(element_bytes / BYTES_PER_S)


def test_measured_memory_bound_operations_are_preferred_to_copies() -> None:
    rates = replace(RATES, memory_bytes_per_s={"eager": known(0.5 * BYTES_PER_S)})

    assert pass_seconds(rates, "fp32") == pytest.approx(8 / BYTES_PER_S)
