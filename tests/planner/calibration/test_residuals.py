"""The conformal term: as wide as left-out sources ask for, no wider."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.calibration.residuals import LEAST_SD, conformal_sd
from planner.rates.parameters import Z90


@given(seed=st.integers(0, 10_000), rows=st.integers(20, 400), drawn=st.floats(0, 0.3))
def test_the_term_and_the_drawn_spread_together_hold_nine_rows_of_ten(seed, rows, drawn):
    rng = np.random.default_rng(seed)
    left_out = rng.normal(0, 0.2, rows)
    spread = rng.uniform(0.5, 1.5, rows) * drawn
    sd = conformal_sd(left_out, spread, np.ones(rows))
    held = np.abs(left_out) <= Z90 * np.hypot(sd, spread) * (1 + 1e-12)

    assert held.mean() >= 0.9
    assert sd == LEAST_SD or (np.abs(left_out) <= Z90 * np.hypot(0.999 * sd, spread)).mean() < 0.9


def test_a_row_of_more_weight_counts_for_more():
    left_out, spread = np.array([0.1, 1.0]), np.zeros(2)

    assert conformal_sd(left_out, spread, np.array([95.0, 5.0])) == pytest.approx(0.1 / Z90)
    assert conformal_sd(left_out, spread, np.array([50.0, 50.0])) == pytest.approx(1.0 / Z90)
