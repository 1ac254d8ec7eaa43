"""The fit: how parameters move, how rows weigh, and what a summary of residuals says."""

from __future__ import annotations

import math

import numpy as np
import pytest

from planner.calibration.fit import describe, moved


def test_a_time_moves_by_the_factor_of_its_shift():
    assert moved(3e-5, math.log(2.0), share=False) == pytest.approx(6e-5)


def test_a_share_bends_towards_one_and_never_reaches_it():
    # e^0.5 x 0.8 would be 1.32; the odds of 0.8, which are 4, grow by e^(0.5 / 0.2) = 12.18 instead
    assert moved(0.8, 0.5, share=True) == pytest.approx(48.73 / 49.73, rel=1e-4)
    assert moved(0.8, 5.0, share=True) < 1.0
    assert moved(0.8, 0.001, share=True) / 0.8 == pytest.approx(math.exp(0.001), rel=1e-5)


def test_a_summary_gives_weighted_median_ninetieth_percentile_and_bias():
    residual = np.log([1.1, 0.9, 1.3, 1.0, 1.2])

    summary = describe(residual, np.ones(5))

    assert summary == pytest.approx({"n": 5, "median_abs_error": 0.1, "p90_abs_error": 0.3, "bias": 0.1})
