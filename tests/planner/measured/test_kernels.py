"""Fits of kernel times: non-negative coefficients, a pull towards 1, residuals carried to near shapes; all by hand."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from planner.measured.kernels import (
    LinearFit,
    attention_columns,
    attention_flop_per_s,
    fit_attention,
    fit_linear,
    fit_products,
    gradient_ratios,
    log_mean,
    product_seconds,
    quiet_first,
    usable,
)
from planner.records.measurement import Measurement
from tests.planner.recorded import BANDWIDTH, FIXED_S, H200, RATE, SHAPES, a_measurement, attention, gemm


def fit_of(
    coefficients: tuple[float, ...], *, points: object = ((1e-9,),), residuals: object = (0.0,), sd: float = 0.0
) -> LinearFit:
    """A fit with these coefficients; without residuals it is a plain sum of columns."""
    return LinearFit(
        coefficients=coefficients, points=np.log(np.array(points)), residuals=np.array(residuals),
        probe_ids=("a",), measurement_sd=sd,
    )  # fmt: skip


def fitted(columns: list[list[float]], seconds: list[float], **changes: float) -> LinearFit:
    count = len(seconds)
    shapes = np.array([[float(2**i)] for i in range(count)])
    return fit_linear(np.array(columns), np.array(seconds), shapes, ["a"] * count, [None] * count, **changes)


@pytest.mark.parametrize(
    ("shape", "correction"),
    [
        (8.0, 0.1 * 1000 / 1000.15),  # on the point: weight 1 / 0.001, against 0.15 of the fit itself
        (8.0 * math.exp(0.7), 0.1 * 1.235289 / 1.385289),  # at its reach of 0.7: e^-0.5 / (0.49 + 0.001) = 1.235289
        (8.0 * math.exp(7.0), 0.0),  # far away only the fit counts
    ],
)
def test_what_a_measured_shape_misses_is_carried_to_near_ones(shape, correction):
    fit = fit_of((2.0,), points=((8.0,),), residuals=(0.1,))

    assert fit.seconds((3.0,), (shape,)) == pytest.approx(6.0 * math.exp(correction), rel=1e-6)


def test_two_residuals_at_the_same_distance_are_averaged():
    fit = fit_of((1.0,), points=((4.0,), (16.0,)), residuals=(0.3, -0.1))
    weight = math.exp(-0.5 * math.log(2) ** 2 / 0.49) / (math.log(2) ** 2 + 0.001)

    assert fit.seconds((1.0,), (8.0,)) == pytest.approx(math.exp(0.2 * weight / (2 * weight + 0.15)))


def test_the_spread_is_what_the_fit_leaves_and_the_noise_of_the_points():
    # sqrt((0.3^2 + 0.4^2) / (2 points - 1 coefficient above 0)) = 0.5; with noise of 1.2: 1.3
    assert fit_of((1.0, 0.0), residuals=(0.3, 0.4), sd=1.2).spread == pytest.approx(1.3)
    # as many coefficients as points leave one degree of freedom all the same
    assert fit_of((1.0, 1.0), residuals=(0.3, 0.4)).spread == pytest.approx(0.5)


def test_a_law_without_noise_is_found_again():
    fit = fitted([[1.0, 1.0], [2.0, 1.0], [5.0, 1.0]], [3.5, 5.5, 11.5])

    assert fit.coefficients == pytest.approx((2.0, 1.5))
    assert fit.residuals == pytest.approx([0.0, 0.0, 0.0], abs=1e-9)


@pytest.mark.parametrize("other", [1.0, 1.7])
def test_a_coefficient_that_would_be_negative_is_0_and_the_better_one_is_fitted_alone(other):
    # Both columns meet both points only with a negative share of the second. Alone, the first has
    # c = (1 + 2/3) / (1 + 4/9) = 15/13 and squared errors of 4/169 + 9/169 = 0.077; the second 0.4 and 0.142
    for first, second in ((0, 1), (1, 0)):
        columns = [[1.0, 1.0], [0.0, 0.0]]
        columns[1][first], columns[1][second] = 2.0, other
        fit = fitted(columns, [1.0, 3.0])

        assert fit.coefficients[first] == pytest.approx(15 / 13)
        assert fit.coefficients[second] == 0
        assert fit.residuals == pytest.approx([math.log(13 / 15), math.log(13 / 10)])


def test_a_pull_draws_a_coefficient_towards_1_with_its_weight():
    # (c / 2 - 1)^2 twice, and (0.1 x (c - 1))^2: c = (1 + 0.01) / (0.5 + 0.01)
    assert fitted([[1.0], [1.0]], [2.0, 2.0]).coefficients == pytest.approx((2.0,))
    assert fitted([[1.0], [1.0]], [2.0, 2.0], pull=0.1).coefficients == pytest.approx((1.01 / 0.51,))


def test_the_noise_of_the_points_is_the_root_mean_square_of_those_known():
    columns, seconds, shapes = np.ones((3, 1)), np.ones(3), np.ones((3, 1))
    partly_known = fit_linear(columns, seconds, shapes, ["a", "b", "c"], [0.03, None, 0.04])
    unknown = fit_linear(columns, seconds, shapes, ["a", "b", "c"], [None, None, None])

    assert partly_known.measurement_sd == pytest.approx(math.sqrt((0.03**2 + 0.04**2) / 2))
    assert unknown.measurement_sd == 0.0
    assert partly_known.probe_ids == ("a", "b", "c")


@pytest.mark.parametrize(
    ("compute", "moved"),
    [
        ("fp32", 440_000),  # (100 x 300 + 200 x 300 + 100 x 200) x 4 bytes
        ("tf32", 440_000),
        ("bf16", 220_000),
        ("fp8", 130_000),  # operands of one byte; the result is written in two
        ("mxfp8", 130_000),
    ],
)
def test_a_product_counts_two_m_n_k_flop_its_bytes_and_one_start(compute, moved):
    terms = [product_seconds(fit_of(coefficients), compute, 100, 200, 300) for coefficients in np.eye(3)]

    assert terms == pytest.approx([2 * 100 * 200 * 300, moved, 1.0])


def test_products_are_fitted_apart_by_what_they_compute_in():
    fp8 = [gemm(*shape, recipe="fp8", noise=-0.5) for shape in SHAPES]
    fits = fit_products([*(gemm(*shape) for shape in SHAPES), *fp8, attention(2048)])

    assert set(fits) == {"bf16", "fp8"}
    assert fits["bf16"].coefficients == pytest.approx((1 / RATE, 1 / BANDWIDTH, FIXED_S), rel=1e-6, abs=0.0)
    assert fits["fp8"].coefficients == pytest.approx((0.5 / RATE, 0.5 / BANDWIDTH, 0.5 * FIXED_S), rel=1e-6, abs=0.0)


@pytest.mark.parametrize(("phase", "seconds_per_flop"), [("forward", 1 / 400e12), ("backward", 2.5 / 350e12)])
def test_attention_is_fitted_over_its_forward_flop(phase, seconds_per_flop):
    fits = fit_attention([attention(length) for length in (2048, 8192, 16384)], phase)

    assert set(fits) == {"bf16"}
    assert fits["bf16"].coefficients == pytest.approx((seconds_per_flop, 0.0, 0.0), rel=1e-6, abs=1e-21)


def test_what_scores_cost_shows_in_heads_of_two_sizes():
    def point(head, length):
        flop = 2.0 * 32 * head * 16384 * length
        seconds = flop / 500e12 + flop / head * 5e-14  # exponentials cost the same whatever the size of a head
        return a_measurement(
            probe_id=f"attention/s{length}d{head}", kind="attention", recipe="bf16-autocast", seq_len=length,
            head_dim=head, flop_model=3.0 * flop, time_median_s=3 * seconds, time_forward_median_s=seconds, **H200,
        )  # fmt: skip

    points = [point(128, 2048), point(128, 8192), point(128, 16384), point(64, 8192)]
    fit = fit_attention(points, "forward")["bf16"]

    assert fit.coefficients == pytest.approx((1 / 500e12, 0.0, 5e-14), rel=1e-3, abs=1e-18)
    assert attention_flop_per_s(fit) == pytest.approx(1 / (1 / 500e12 + 5e-14 / 128), rel=1e-3)


def test_a_cost_per_token_is_not_charged_to_fewer_tokens():
    # every point has 16 384 tokens, as in the suite: 1 us for each 1 024 of them
    def point(length):
        batch, flop = 16384 // length, 2.0 * 32 * 128 * 16384 * length
        seconds = flop / 400e12 + 16e-6
        return a_measurement(
            probe_id=f"attention/s{length}", kind="attention", recipe="bf16-autocast", seq_len=length,
            micro_batch=batch, flop_model=3.0 * flop, time_median_s=3 * seconds, time_forward_median_s=seconds, **H200,
        )  # fmt: skip

    fit = fit_attention([point(length) for length in (2048, 8192, 16384)], "forward")["bf16"]
    flop = 2.0 * 32 * 128 * 2048**2

    assert fit.seconds(attention_columns(flop, 2048.0, 128.0), (2048, 128)) == pytest.approx(
        flop / 400e12 + 2e-6, rel=1e-6
    )


def test_the_gradients_of_a_layer_are_placed_at_the_shapes_of_their_own_products():
    fit = fit_products([gemm(8192, 4096, 1024, role=role) for role in ("forward", "dgrad", "wgrad")])["bf16"]

    # [m, n] x [n, k] for the input's, [n, m] x [m, k] for the weight's
    assert np.exp(fit.points) == pytest.approx(
        np.array([[8192, 4096, 1024], [8192, 1024, 4096], [4096, 1024, 8192]]), rel=1e-9
    )


def of_roles(recipe: str, wgrad: float) -> list[Measurement]:
    """A layer's product and its gradients at two shapes; that of the weight takes `wgrad` times as long as usual."""
    shapes = ((8192, 4096, 1024), (8192, 8192, 8192))
    slowdowns = {"forward": 1.0, "dgrad": 1.0, "wgrad": wgrad}
    return [
        replace(point, time=replace(point.time, median_s=slowdowns[role] * (point.time.median_s or 0.0)))
        for shape in shapes
        for role in slowdowns
        for point in [gemm(*shape, role=role, recipe=recipe)]
    ]


def test_a_gradient_that_takes_far_longer_than_its_product_has_a_ratio_to_it_and_is_fitted_less_that():
    usual, slow = of_roles("bf16-autocast", 1.05), of_roles("tf32", 1.6)
    ratios = gradient_ratios([*usual, *slow])

    assert ratios["bf16"] == (1.0, 1.0)  # two bursts differ by as much
    assert ratios["tf32"] == pytest.approx((1.0, 1.6))
    plain = fit_products(of_roles("tf32", 1.0))["tf32"]
    assert fit_products(slow, ratios)["tf32"].coefficients == pytest.approx(plain.coefficients, rel=1e-6, abs=0.0)


def test_fp16_has_the_fit_of_bf16_times_what_it_took_beside_it_at_a_few_shapes():
    bf16 = [gemm(m, n, k) for m, n, k in SHAPES]
    two_points = [gemm(m, n, k, "fp16", noise=0.05) for m, n, k in SHAPES[:2]]
    all_points = [gemm(m, n, k, "fp16", noise=0.3) for m, n, k in SHAPES]

    from_two, from_all = fit_products([*bf16, *two_points]), fit_products([*bf16, *all_points])

    assert from_two["fp16"].coefficients == pytest.approx([1.05 * c for c in from_two["bf16"].coefficients])
    assert set(from_two["fp16"].probe_ids) == {point.probe_id for point in (*bf16, *two_points)}
    assert from_all["fp16"].coefficients == pytest.approx([1.3 * c for c in from_two["bf16"].coefficients])
    assert fit_products(two_points)["fp16"].points.shape == (2, 3)  # nothing beside it: as it was measured


def test_points_measured_beside_other_load_count_only_where_there_are_not_two_quiet_ones():
    quiet, loud = gemm(1024, 1024, 1024), gemm(2048, 2048, 2048, quality="contended")

    assert quiet_first([quiet, loud, quiet]) == [quiet, quiet]
    assert quiet_first([quiet, loud]) == [quiet, loud]


def test_only_points_of_a_kind_that_hold_a_time_are_used():
    point = gemm(1024, 1024, 1024)
    failed = replace(point, status="oom", time=replace(point.time, median_s=None), reason="out of memory")

    assert usable([gemm(1024, 1024, 1024), failed, attention(2048)], "gemm") == [gemm(1024, 1024, 1024)]


def test_means_and_spreads_of_ratios_are_of_their_logarithms():
    # ln 1 and ln 4: mean ln 2, sample deviation ln 4 / sqrt 2
    assert log_mean([1.0, 4.0]) == pytest.approx((2.0, math.log(4) / math.sqrt(2)))
    assert log_mean([3.0]) == pytest.approx((3.0, 0.0))


def test_a_record_of_very_many_points_gives_the_same_times_in_parts(monkeypatch):
    fit = fit_products([gemm(*shape, noise=0.1 * number) for number, shape in enumerate(SHAPES)])["bf16"]
    shapes = np.array([(2.0**n, 2.0**k, 512.0) for n in range(5, 12) for k in range(5, 12)])
    columns = np.column_stack([2.0 * shapes.prod(axis=1), shapes[:, 0] * shapes[:, 1], np.ones(len(shapes))])
    whole = fit.all_seconds(columns, shapes)

    monkeypatch.setattr("planner.measured.kernels.MOST_DISTANCES", 5 * len(SHAPES))

    assert fit.all_seconds(columns, shapes) == pytest.approx(whole, rel=1e-12)
    assert len(set(whole)) > 5 * 8  # more parts than one
