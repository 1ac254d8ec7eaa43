"""Kernel time of a phase by kind of work, on rates that are written out."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from planner.measured.kernels import LinearFit
from planner.measured.layers.phases import pass_seconds, phase_seconds
from planner.measured.layers.workloads import PointWork, Product
from planner.measured.rates import LayerRun, MeasuredRates, MeasuredValue

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
    operand_bytes_per_s={}, best_matmul_flop_per_s={}, attention_forward_flop_per_s={},
    attention_backward_flop_per_s={}, copy_bytes_per_s=known(BYTES_PER_S), memory_bytes_per_s={}, kernel_s=None,
    launch_s=None, optimizer_s_per_param={}, optimizer_state_bytes_per_param={}, power_w={}, composition_ratio={},
    product_fits={"bf16": fit(1 / FLOP_PER_S, 3, 3)},
    attention_fits={"bf16": (fit(1 / ATTENTION_FLOP_PER_S, 3, 2), fit(2.5 / ATTENTION_FLOP_PER_S, 3, 2))},
)  # fmt: skip
WORK = PointWork(
    products=(Product(m=100.0, n=100.0, k=100.0, count=5.0),),  # 5 x 2e6 FLOP: 10 us
    edge_products=(Product(m=100.0, n=50.0, k=100.0, low=False),),  # 1e6 FLOP: 1 us
    attention_flop=2e6,  # 4 us forward, 10 us backward
    attention_head=128.0,
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
    forward, backward = phase_seconds(RATES, WORK, "bf16-autocast")
    _, recomputed_backward = phase_seconds(RATES, replace(WORK, recompute=True), "bf16-autocast")

    layers_forward = forward.products + forward.attention + forward.traffic
    assert recomputed_backward.total - backward.total == pytest.approx(layers_forward)
    assert (recomputed_backward.end_products, recomputed_backward.end_traffic) == (
        backward.end_products,
        backward.end_traffic,
    )


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


LOW = replace(WORK, products=(Product(m=100.0, n=50.0, k=200.0, count=2.0),), edge_products=())
"""Two products with operands of 40 000 (input), 20 000 (weight) and 10 000 elements (output)."""
FP8 = replace(RATES, product_fits=dict.fromkeys(("bf16", "fp8"), RATES.product_fits["bf16"]))


def casts(rates: MeasuredRates = FP8, **changes: bool) -> tuple[float, float]:
    forward, backward = phase_seconds(rates, replace(LOW, **changes), "fp8")
    return forward.casts, backward.casts


def test_every_product_casts_both_of_its_operands_as_measured() -> None:
    cast_s = {LayerRun(recipe="fp8"): known(1e-9), LayerRun(recipe="fp8", compiled=True): known(2e-10)}
    rates = replace(FP8, cast_s=cast_s)

    # forward input and weight; backward the gradient and the weight, then the gradient and the input; eager code also
    # copies the other layout of three of them, 2 bytes an element at 1 GB/s
    assert casts(rates) == pytest.approx((60e-6, 80e-6 + 2 * 70_000 / BYTES_PER_S))
    assert casts(rates, compiled=True) == pytest.approx((60_000 * 2e-10, 80_000 * 2e-10))


def test_casts_that_nobody_measured_take_their_traffic() -> None:
    # kernel by kernel 33 bytes an element; fused two reads of 2 bytes and one byte written
    assert casts() == pytest.approx((60_000 * 33 / BYTES_PER_S, (80_000 * 33 + 2 * 70_000) / BYTES_PER_S))
    assert casts(compiled=True) == pytest.approx((60_000 * 5 / BYTES_PER_S, 80_000 * 5 / BYTES_PER_S))


def test_checkpointing_casts_the_operands_of_the_forward_products_again() -> None:
    stored, recomputed = casts(), casts(recompute=True)

    assert recomputed == pytest.approx((stored[0], stored[1] + stored[0]))


def test_only_fp8_casts_its_operands() -> None:
    assert [phase.casts for phase in phase_seconds(RATES, LOW, "bf16-autocast")] == [0.0, 0.0]


def test_arithmetic_follows_the_clock_and_memory_traffic_does_not() -> None:
    rates = replace(RATES, sustained_clock_hz={"bf16": 1.6e9}, attention_clock_hz={"bf16": 1.8e9})
    held, _ = phase_seconds(rates, WORK, "bf16-autocast")
    faster, _ = phase_seconds(rates, WORK, "bf16-autocast", 2.0e9)

    assert faster.products == pytest.approx(0.8 * held.products)
    assert faster.attention == pytest.approx(0.9 * held.attention)
    assert faster.traffic == held.traffic


def test_compiled_layers_move_their_memory_as_compiled_operations_do_and_their_ends_as_eager_ones() -> None:
    bandwidths = {"eager": known(BYTES_PER_S), "compiled": known(2 * BYTES_PER_S)}
    rates = replace(RATES, memory_bytes_per_s=bandwidths)
    eager, _ = phase_seconds(rates, WORK, "bf16-autocast")
    compiled, _ = phase_seconds(rates, replace(WORK, compiled=True), "bf16-autocast")

    assert compiled.traffic == pytest.approx(0.5 * eager.traffic)
    assert compiled.end_traffic == eager.end_traffic
