"""TOST: worked by hand, and held to its promises by simulation."""

from __future__ import annotations

from math import nan, sqrt

import numpy as np
import pytest

from probes.numerics.statistics.equivalence import compare, seeds_needed


def test_a_case_worked_by_hand():
    comparison = compare([0.01, -0.01, 0.02, 0.00], margin=0.05)

    # mean 0.005, sd sqrt(5e-4 / 3) = 0.01291, error 0.006455; t(0.95, 3) = 2.3534
    assert comparison.difference_mid == pytest.approx(0.005)
    assert comparison.difference_sd == pytest.approx(0.0129099, rel=1e-5)
    assert (comparison.difference_low, comparison.difference_high) == pytest.approx((-0.010191, 0.020191), abs=1e-5)
    assert comparison.verdict == "equivalent"
    assert comparison.p_value == pytest.approx(
        0.00301, abs=2e-4
    )  # t = (0.05 - 0.005) / 0.006455 = 6.971 with 3 degrees


def test_two_runs_of_one_precision_are_equivalent_and_a_broken_one_is_not():
    assert compare([0.0, 0.0, 0.0], margin=0.01).verdict == "equivalent"
    assert compare([0.5, 0.6, 0.55], margin=0.01).verdict == "not_equivalent"
    assert compare([-0.5, -0.6, -0.55], margin=0.01).verdict == "not_equivalent"
    assert compare([0.001, nan, 0.002], margin=0.01).verdict == "not_equivalent"


def test_a_spread_over_the_margin_and_a_single_pair_cannot_tell():
    assert compare([0.03, -0.03, 0.01], margin=0.01).verdict == "cannot_tell"
    assert compare([0.0], margin=0.01).verdict == "cannot_tell"
    assert compare([], margin=0.01).difference_mid is None


def test_seeds_needed_have_the_power_that_is_promised():
    rng = np.random.default_rng(5)
    for mean, sd, margin in [(0.0, 0.02, 0.02), (0.008, 0.01, 0.02)]:
        n = seeds_needed(mean, sd, margin)
        assert n is not None
        shown = [compare(list(rng.normal(mean, sd, n)), margin).verdict == "equivalent" for _ in range(1500)]
        assert 0.76 < np.mean(shown) < 0.90


def test_the_risk_of_a_false_equivalence_is_at_most_five_percent():
    rng = np.random.default_rng(6)
    shown = [compare(list(rng.normal(0.02, 0.01, 8)), 0.02).verdict == "equivalent" for _ in range(3000)]

    assert np.mean(shown) < 0.05 + 3.0 * sqrt(0.05 * 0.95 / 3000)


def test_seeds_beyond_the_margin_show_in_four_of_five_attempts_that_the_interval_lies_outside():
    rng = np.random.default_rng(7)
    n = seeds_needed(0.033, 0.055, 0.02)

    # with normal quantiles (0.055 / 0.013)^2 (1.645 + 0.842)^2 = 110.7; Student's need one or two more
    assert n is not None
    assert 110 <= n <= 114
    shown = [compare(list(rng.normal(0.033, 0.055, n)), 0.02).verdict == "not_equivalent" for _ in range(1500)]
    assert 0.76 < np.mean(shown) < 0.84
    above, within = compare([0.09, -0.02, 0.05], margin=0.02), compare([0.03, -0.03, 0.01], margin=0.02)
    assert (above.verdict, above.seeds_would_show) == ("cannot_tell", "not_equivalent")
    assert (within.verdict, within.seeds_would_show) == ("cannot_tell", "equivalent")


def test_no_number_of_seeds_shows_what_is_not_there():
    assert seeds_needed(0.02, 0.01, 0.02) is None
    assert seeds_needed(0.0, 1.0, 1e-4) is None
    assert seeds_needed(0.0, 0.0, 0.01) == 2
