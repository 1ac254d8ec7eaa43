"""Parameters moved in their logarithms: times by a factor, shares along a bend, and a posterior that is dropped."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from planner.calibration.shifts import at_shift, cholesky, is_share, slope_ratios, with_range
from planner.rates.parameters import shipped_parameters


def test_a_time_is_multiplied_and_a_share_stays_below_one():
    shipped = shipped_parameters()
    moved = at_shift(shipped, ["kernel_s", "matmul_efficiency.Volta"], np.array([math.log(2.0), 3.0]))

    assert moved.rows["kernel_s"].value == pytest.approx(2.0 * shipped.rows["kernel_s"].value)
    assert shipped.rows["matmul_efficiency.Volta"].value < moved.rows["matmul_efficiency.Volta"].value < 1.0
    assert is_share(shipped, "matmul_efficiency.Volta")
    assert not is_share(shipped, "kernel_s")


def test_parameters_that_were_moved_have_no_posterior():
    assert shipped_parameters().joint is not None
    assert at_shift(shipped_parameters(), ["kernel_s"], np.array([0.1])).joint is None


def test_shifts_of_a_share_go_less_far_the_nearer_it_is_to_one():
    shipped = shipped_parameters()
    ids = ("kernel_s", "nic_efficiency")
    halved = shipped.replaced([replace(shipped.rows["nic_efficiency"], value=0.5)])
    moved = at_shift(halved, ids, np.array([0.7, math.log(4.0) / 2.0]))

    # odds of 1 times e^(0.693 / 0.5) are 4: from 0.5 to 0.8, where 1 - value is 0.4 of what it was
    assert moved.rows["nic_efficiency"].value == pytest.approx(0.8)
    assert slope_ratios(halved, moved, ids).tolist() == pytest.approx([1.0, 0.4])


def test_a_range_holds_nine_in_ten_and_that_of_a_share_ends_below_one():
    row = shipped_parameters().rows["kernel_s"]
    time, share = with_range(row, 2.0, 0.1, share=False), with_range(row, 0.8, 0.5, share=True)

    # 5th and 95th percentile of a normal distribution: 1.64485363 standard deviations
    assert (time.low, time.high) == pytest.approx((2.0 * math.exp(-0.164485363), 2.0 * math.exp(0.164485363)))
    assert share.low < 0.8 < share.high < 1.0


def test_the_factor_times_its_transpose_is_the_covariance():
    covariance = np.array([[4.0, 2.0], [2.0, 3.0]])
    factor = cholesky(covariance)

    assert factor @ factor.T == pytest.approx(covariance)
    assert factor[0, 1] == 0.0
