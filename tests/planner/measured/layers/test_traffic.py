"""Bandwidth of a layer's memory-bound work: time adds up, and a share of it is uncertain, not each operation."""

from __future__ import annotations

from dataclasses import replace

import pytest

from planner.measured.device import measured_rates
from planner.measured.layers.traffic import PASSES, SHARE_SD, layer_bandwidths, memory_bandwidth
from planner.records.measurement import Measurement
from tests.planner.recorded import H200, a_measurement, kernels

RATES = {"rmsnorm": 2.4e12, "residual": 4.2e12, "silu_mul": 2.4e12, "rope": 0.3e12, "cross_entropy": 0.6e12}
"""Bytes per second of eager operations, about as an H200 makes them."""


def operation(
    role: str, bytes_per_s: float, *, recipe: str = "bf16-autocast", compiled: bool = False, quality: str = "ok"
) -> Measurement:
    """One operation on 8192 by 8192 elements."""
    return a_measurement(
        probe_id=f"memory_op/{role}/{recipe}/{compiled}", kind="memory_op", role=role, recipe=recipe, compiled=compiled,
        bytes_min=1e9, time_median_s=1e9 / bytes_per_s, quality=quality, **H200,
    )  # fmt: skip


def test_the_time_of_a_layer_is_the_sum_of_the_times_of_its_operations() -> None:
    bandwidth = layer_bandwidths([operation(role, rate) for role, rate in RATES.items()])["eager"]

    # per token: 10 and 10 passes over the hidden state, 6 over q, k and v, 8 over the inner activation, 4 over q and k
    traffic = {"rmsnorm": 10 * 4096, "residual": 10 * 4096 + 6 * 6144, "silu_mul": 8 * 14336, "rope": 4 * 5120}
    assert traffic == PASSES
    time = sum(moved / RATES[role] for role, moved in traffic.items())
    assert bandwidth.value == pytest.approx(sum(traffic.values()) / time)


def test_its_spread_is_that_of_the_shares_and_falls_away_where_operations_are_alike() -> None:
    differing = layer_bandwidths([operation(role, rate) for role, rate in RATES.items()])["eager"]
    uniform = layer_bandwidths([operation(role, 2e12) for role in RATES])["eager"]
    mean, whole = differing.value, sum(PASSES.values())
    shifts = [PASSES[role] / whole * (mean / RATES[role] - 1) for role in PASSES]

    assert uniform.relative_sd == pytest.approx(0.0, abs=1e-12)
    assert differing.relative_sd == pytest.approx(SHARE_SD * sum(shift**2 for shift in shifts) ** 0.5)
    assert 0.05 < differing.relative_sd < 0.2  # where the operations themselves are fourteenfold apart


def test_what_was_not_measured_widens_the_range() -> None:
    quick = layer_bandwidths([operation("rmsnorm", 2e12), operation("silu_mul", 2e12)])["eager"]

    assert quick.value == pytest.approx(2e12)
    assert 0.2 < quick.relative_sd < 0.3  # additions, copies and rotary embedding: 39 % of the traffic


def test_elements_of_32_bits_have_a_bandwidth_of_their_own() -> None:
    points = [*kernels(), operation("silu_mul", 2e12), operation("silu_mul", 3e12, recipe="fp32")]
    rates = measured_rates(points)
    narrow, wide = (memory_bandwidth(rates, size, compiled=False) for size in (2.0, 4.0))

    assert narrow is not None
    assert wide is not None
    assert (narrow.value, wide.value) == (pytest.approx(2e12), pytest.approx(3e12))
    assert memory_bandwidth(rates, 2.0, compiled=True) is None


def test_a_record_of_one_size_alone_stands_for_both() -> None:
    for recipe in ("fp32", "bf16-autocast"):
        rates = measured_rates([*kernels(), operation("silu_mul", 2e12, recipe=recipe)])
        for size in (2.0, 4.0):
            bandwidth = memory_bandwidth(rates, size, compiled=False)
            assert bandwidth is not None
            assert bandwidth.value == pytest.approx(2e12)


def test_compiled_operations_are_kept_apart_and_contended_ones_left_out() -> None:
    points = [
        operation("silu_mul", 2e12), operation("rmsnorm", 2e12), operation("residual", 0.1e12, quality="contended"),
        operation("silu_mul", 3e12, compiled=True),
    ]  # fmt: skip
    bandwidths = layer_bandwidths(points)

    assert bandwidths["eager"].value == pytest.approx(2e12)
    assert bandwidths["compiled"].value == pytest.approx(3e12)
    assert layer_bandwidths([replace(point, kind="gemm") for point in points]) == {}
