"""From records to rates: kernels made up by a known law give that law back; what was not measured is absent."""

from __future__ import annotations

import random

import pytest

from planner.errors import InputFileError
from planner.measured.device import measured_rates
from planner.measured.kernels import product_seconds
from planner.measured.rates import Activity, ActivityKind
from tests.planner.recorded import BANDWIDTH, FIXED_S, H200, RATE, SHAPES, a_measurement, gemm, kernels


def test_the_law_behind_the_products_is_found_again() -> None:
    rates = measured_rates([gemm(*shape) for shape in SHAPES])

    assert rates.gpu == "h200-sxm-141gb"
    assert rates.matmul_flop_per_s["bf16"].value == pytest.approx(RATE, rel=1e-3)
    assert rates.operand_bytes_per_s["bf16"].value == pytest.approx(BANDWIDTH, rel=1e-2)
    assert rates.product_fits["bf16"].coefficients[2] == pytest.approx(FIXED_S, rel=1e-2)
    assert rates.matmul_flop_per_s["bf16"].relative_sd < 0.01


def test_noise_of_three_percent_leaves_the_rate_within_two_and_shows_in_its_spread() -> None:
    rng = random.Random(0)
    noisy = [gemm(*shape, noise=rng.gauss(0.0, 0.03)) for shape in SHAPES]

    rate = measured_rates(noisy).matmul_flop_per_s["bf16"]

    assert rate.value == pytest.approx(RATE, rel=0.03)
    assert 0.01 < rate.relative_sd < 0.06


def test_the_fastest_product_is_kept_beside_the_asymptote() -> None:
    best = measured_rates(kernels()).best_matmul_flop_per_s["bf16"]

    assert best.probe_ids == ("gemm/16384x16384x16384/forward/bf16-autocast",)
    assert best.value < RATE


def test_a_shape_that_was_measured_is_met_exactly_and_a_new_one_by_the_law() -> None:
    slow = gemm(8192, 7168, 8192, noise=0.2)  # a shape that the chip does not like
    others = [gemm(*shape) for shape in SHAPES if shape != (8192, 7168, 8192)]
    fit = measured_rates([*others, slow]).product_fits["bf16"]

    assert product_seconds(fit, "bf16", 8192, 7168, 8192) == pytest.approx(slow.time.median_s, rel=0.01)
    law = 2.0 * 512**3 / RATE + 6.0 * 512**2 / BANDWIDTH + FIXED_S
    # one shape of eight that is 20 % slow raises the fixed part, which is most of so small a product, by 3 %
    assert product_seconds(fit, "bf16", 512, 512, 512) == pytest.approx(law, rel=0.04)


def test_one_product_alone_gives_a_rate_and_nothing_that_it_cannot_tell() -> None:
    rates = measured_rates([gemm(16384, 16384, 16384)])

    assert rates.matmul_flop_per_s["bf16"].value == pytest.approx(RATE, rel=0.05)  # operands and start included
    assert rates.operand_bytes_per_s == {}


def test_attention_is_counted_causally_and_backward_at_two_and_a_half_times_the_arithmetic() -> None:
    rates = measured_rates(kernels())

    assert rates.attention_forward_flop_per_s["bf16"].value == pytest.approx(400e12, rel=1e-3)
    assert rates.attention_backward_flop_per_s["bf16"].value == pytest.approx(350e12, rel=1e-3)


def test_what_was_not_measured_is_absent_and_not_zero() -> None:
    rates = measured_rates([gemm(8192, 8192, 8192)])

    assert "fp8" not in rates.matmul_flop_per_s
    assert rates.copy_bytes_per_s is None
    assert rates.kernel_s is None
    assert rates.power_w == {}


@pytest.mark.parametrize(
    ("changes", "activity"),
    [
        ({"kind": "idle", "role": "bare", "recipe": None}, Activity(kind=ActivityKind.IDLE)),
        ({"kind": "idle", "role": "context", "recipe": None}, Activity(kind=ActivityKind.CONTEXT)),
        ({"kind": "power", "role": "forward", "recipe": "fp8"}, Activity(kind=ActivityKind.MATMUL, of="fp8")),
        ({"kind": "power", "role": "copy", "recipe": None}, Activity(kind=ActivityKind.MEMORY)),
        (
            {"kind": "block", "recompute": "none", "compiled": False},
            Activity(kind=ActivityKind.BLOCK, of="bf16-autocast"),
        ),
        ({"kind": "optimizer", "optimizer": "adamw"}, Activity(kind=ActivityKind.OPTIMIZER, of="adamw")),
    ],
)
def test_power_is_kept_by_activity(changes: dict[str, object], activity: Activity) -> None:
    point = a_measurement(power_mean_w=612.0, energy_quality="ok", **(H200 | changes))

    rates = measured_rates([point])

    assert rates.power_w[activity].value == 612.0
    assert rates.power_w[activity].relative_sd == 0.02


@pytest.mark.parametrize("quality", ["inconsistent", "short"])
def test_power_from_a_bad_window_is_not_used(quality: str) -> None:
    point = a_measurement(kind="power", role="copy", power_mean_w=612.0, energy_quality=quality, **H200)

    assert measured_rates([point]).power_w == {}


def test_an_optimizer_is_seconds_per_parameter() -> None:
    point = a_measurement(
        kind="optimizer", optimizer="adamw", params=500_000_000, time_median_s=0.004,
        optimizer_state_bytes_per_param=8.0, **H200,
    )  # fmt: skip

    rates = measured_rates([point])

    assert rates.optimizer_s_per_param["adamw"].value == pytest.approx(8e-12, abs=0.0)
    assert rates.optimizer_state_bytes_per_param["adamw"].value == 8.0


def test_contended_points_widen_the_spread_and_points_with_retries_are_left_out() -> None:
    retried = gemm(8192, 8192, 8192, noise=5.0, alloc_retries=3)

    rates = measured_rates([*kernels(), retried])

    assert rates.matmul_flop_per_s["bf16"].value == pytest.approx(RATE, rel=1e-3)


def test_no_points_at_all_is_an_invalid_input() -> None:
    with pytest.raises(InputFileError):
        measured_rates([])
