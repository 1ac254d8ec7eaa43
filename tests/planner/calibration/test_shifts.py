"""Parameters moved in their logarithms: times by a factor, shares along a bend, and a posterior that is dropped."""

from __future__ import annotations

import math

import numpy as np
import pytest

from planner.calibration.shifts import at_shift, cholesky, is_share
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


def test_the_factor_times_its_transpose_is_the_covariance():
    covariance = np.array([[4.0, 2.0], [2.0, 3.0]])
    factor = cholesky(covariance)

    assert factor @ factor.T == pytest.approx(covariance)
    assert factor[0, 1] == 0.0
