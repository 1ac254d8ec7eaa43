"""Bursts at the clock that their kind of work sustains."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from planner.measured.clocks import BURST_SD, clock_ratio_of, known_sd
from planner.measured.device import measured_rates
from planner.measured.kernels import fit_attention, fit_products, sustained_clock_hz
from planner.records.figures import TimeStatistics
from planner.records.measurement import Measurement
from tests.planner.recorded import BANDWIDTH, FIXED_S, H200, RATE, SHAPES, a_measurement, attention, gemm

HELD_HZ, BURST_HZ = 1.6e9, 1.8e9


def held(recipe: str = "bf16-autocast", kind: str = "power", clock_hz: float = HELD_HZ) -> Measurement:
    """A window of seconds at the power limit."""
    return a_measurement(
        probe_id=f"{kind}/{recipe}", kind=kind, recipe=recipe, regime="sustained", sm_clock_median_hz=clock_hz, **H200
    )


def bursts(faster: float = 1.0, recipe: str = "bf16-autocast") -> list[Measurement]:
    """Products of recorded.py's law, faster than that by a factor."""
    points = [gemm(m, n, k, recipe, regime="burst", sm_clock_median_hz=BURST_HZ) for m, n, k in SHAPES]
    return [replace(point, time=TimeStatistics(median_s=(point.time.median_s or 0.0) / faster)) for point in points]


def hot(recipe: str = "bf16-autocast") -> Measurement:
    """The largest square of recorded.py's law for seconds at the power limit."""
    return replace(
        gemm(8192, 8192, 8192, recipe, kind="power", regime="sustained", sm_clock_median_hz=HELD_HZ),
        probe_id=f"power/{recipe}",
    )


def test_bursts_are_brought_to_the_level_of_what_ran_hot_whatever_clock_they_had() -> None:
    fit = fit_products([hot(), *bursts(1.08)])["bf16"]

    assert fit.coefficients == pytest.approx((1 / RATE, 1 / BANDWIDTH, FIXED_S), rel=1e-6, abs=0.0)
    assert "power/bf16-autocast" in fit.probe_ids


def test_scales_per_row_have_the_level_of_scales_per_tensor_which_alone_run_hot() -> None:
    fits = fit_products([hot("fp8"), *bursts(1.08, "fp8"), *bursts(1.08 * 0.9, "fp8-rowwise")])

    assert fits["fp8-rowwise"].coefficients[0] == pytest.approx(fits["fp8"].coefficients[0] / 0.9, rel=1e-6)


def test_bursts_stay_as_they_are_where_nothing_ran_hot() -> None:
    fit = fit_products(bursts(1.08))["bf16"]

    assert fit.coefficients[0] == pytest.approx(1 / (1.08 * RATE), rel=1e-6, abs=0.0)
    assert fit.spread == pytest.approx(BURST_SD, rel=1e-6)  # they may not hold their clock
    assert fit_products([hot(), *bursts(1.08)])["bf16"].spread < 1e-6


def test_each_kind_of_compute_has_its_own_clock_and_layers_stand_in_for_products() -> None:
    rates = measured_rates([held(), held("fp8", clock_hz=1.4e9), held("tf32", "block", 1.7e9), *bursts(),
                            gemm(1024, 1024, 1024, "fp8"), gemm(1024, 1024, 1024, "tf32")])  # fmt: skip

    assert rates.sustained_clock_hz == {"tf32": 1.7e9, "bf16": HELD_HZ, "fp8": 1.4e9}
    assert rates.full_clock_hz == BURST_HZ


def test_fp16_holds_the_clock_of_bf16_where_it_did_not_run_alone() -> None:
    points = [held(), held("fp16", "block", 1.7e9)]

    assert sustained_clock_hz(points, "fp16") == HELD_HZ
    assert sustained_clock_hz([*points, held("fp16", clock_hz=1.55e9)], "fp16") == 1.55e9


def test_products_hold_no_higher_clock_than_their_own_large_bursts_where_layers_stand_in_for_them() -> None:
    # an H100 whose eager FP8 layers ran at the full clock: they wait for their casts
    layers = held("fp8", "block", 1.98e9)
    large = [gemm(16384, 8192, 8192, "fp8", sm_clock_median_hz=clock_hz) for clock_hz in (1.3e9, 1.4e9, 1.9e9)]
    large = [replace(point, probe_id=f"{point.probe_id}/{i}") for i, point in enumerate(large)]
    small = gemm(1024, 1024, 1024, "fp8", sm_clock_median_hz=1.2e9)

    assert sustained_clock_hz([layers, *large, small], "fp8") == 1.4e9
    assert sustained_clock_hz([layers, small], "fp8") == 1.98e9
    assert sustained_clock_hz([held("fp8", clock_hz=1.35e9), layers, *large], "fp8") == 1.35e9
    assert sustained_clock_hz(large, "fp8") is None


def test_a_burst_without_a_clock_is_less_sure() -> None:
    point = a_measurement(regime="burst", **H200)

    assert known_sd(point, 1.0) == point.time_relative_sd
    assert known_sd(point, None) == pytest.approx(float(np.hypot(point.time_relative_sd or 0.0, BURST_SD)))


def test_on_a_cpu_nothing_is_known_to_differ_between_bursts_and_sustained_work() -> None:
    point = a_measurement(regime="burst")

    assert known_sd(point, None) == point.time_relative_sd


@pytest.mark.parametrize(("clock_hz", "ratio"), [(1.8e9, 1.125), (1.2e9, 0.75), (0.345e9, None), (None, None)])
def test_a_clock_that_was_read_at_rest_says_nothing(clock_hz: float | None, ratio: float | None) -> None:
    assert clock_ratio_of(clock_hz, HELD_HZ) == (None if ratio is None else pytest.approx(ratio))
    assert clock_ratio_of(HELD_HZ, None) is None


def test_attention_takes_as_long_as_it_took() -> None:
    fit = fit_attention([attention(length) for length in (2048, 8192, 16384)], "forward")["bf16"]

    assert 400e12 * fit.coefficients[0] == pytest.approx(1.0, rel=1e-6)
