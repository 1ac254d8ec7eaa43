"""Cross-validation: conditioning is that of a joint normal, every lineage has one vote, and draws agree with lines."""

from __future__ import annotations

import math

import numpy as np
import pytest

from planner.calibration.crossval import (
    condition,
    drawn_left_out,
    learning_curve,
    leave_out,
    left_out_residuals,
    log_density,
    own_scale,
    predict_left_out,
)
from planner.rates.parameters import Figure
from tests.planner.calibration.test_hierarchy import hierarchy, of


def test_what_two_rows_share_is_learned_from_one_of_them():
    # variance 1 each, shared 0.64, own 0.36. The row is one standard deviation off, so the team scatters like most;
    # 0.33 is left of it, at which Student's t weighs it 6 / (5 + 0.33^2 / 0.36) = 1.13: the gain is 0.64 / 0.96
    shared, own_sd = np.full((2, 2), 0.64), np.array([0.6, 0.6])

    left, spread = condition(np.array([1.0, 1.0]), shared, own_sd, np.array([0]))

    gain = 0.64 / (0.64 + 0.36 / 1.13)
    assert left[1] == pytest.approx(1.0 - gain, abs=0.005)
    assert spread[1] == pytest.approx(math.sqrt(0.64 - 0.64 * gain + 0.36), abs=0.005)


def test_rows_that_scatter_teach_less_than_rows_that_agree():
    # the same mean of the three, 0.2
    shared, own_sd, known = np.full((4, 4), 0.01), np.full(4, 0.1), np.array([0, 1, 2])

    agreeing, narrow = condition(np.full(4, 0.2), shared, own_sd, known)
    scattered, wide = condition(np.array([0.05, 0.2, 0.35, 0.2]), shared, own_sd, known)

    assert scattered[3] > 1.15 * agreeing[3]
    assert wide[3] > 1.15 * narrow[3]


def test_a_row_ten_times_slower_than_its_neighbours_teaches_little():
    shared, own_sd = np.full((4, 4), 0.04), np.full(4, 0.1)
    known = np.array([0, 1, 2])

    agreeing, _ = condition(np.array([0.1, 0.1, 0.1, 0.1]), shared, own_sd, known)
    one_off, _ = condition(np.array([0.1, 0.1, math.log(10.0), 0.1]), shared, own_sd, known)

    # a normal model would take the mean of the three, 0.83, for the team's
    assert abs(one_off[3] - agreeing[3]) < 0.1


def test_rows_that_agree_better_than_stated_make_a_team_scatter_less():
    # six degrees of freedom before, three rows that agree exactly: sqrt(6 / 9)
    assert own_scale(np.zeros(3), np.ones(3)) == pytest.approx(math.sqrt(6 / 9))
    assert own_scale(np.full(3, 2.0), np.ones(3)) == pytest.approx(math.sqrt((6 + 12) / 9))


def test_no_single_row_makes_a_team_look_wild():
    assert own_scale(np.array([50.0]), np.ones(1)) == pytest.approx(math.sqrt((6 + 16) / 7))


def test_nothing_known_leaves_the_residuals_as_they_are():
    left, spread = condition(np.array([0.3]), np.array([[0.09]]), np.array([0.4]), np.array([], dtype=int))

    assert left.tolist() == [0.3]
    assert spread.tolist() == pytest.approx([0.5])


def test_rows_that_share_nothing_teach_nothing_of_each_other():
    left, spread = condition(np.array([1.0, 0.2]), np.diag([1.0, 1.0]), np.array([0.1, 0.1]), np.array([0]))

    assert left[1] == 0.2
    assert spread[1] == pytest.approx(math.sqrt(1.01), rel=1e-4)


def test_the_density_integrates_to_one_and_has_the_variance_stated():
    at = np.linspace(-40, 40, 200_001)
    density = np.exp(log_density(at, np.full(len(at), 0.7)))
    step = at[1] - at[0]

    assert (density * step).sum() == pytest.approx(1.0, abs=1e-4)
    assert (density * at**2 * step).sum() == pytest.approx(0.49, rel=0.01)


@pytest.fixture(scope="module")
def five_teams():
    factors = {"a": 0.8, "b": 0.9, "c": 1.0, "d": 1.1, "e": 1.25}
    return hierarchy([row for name, factor in factors.items() for row in of(name, factor, count=5)])


def test_every_lineage_is_left_out_once_for_each_figure(five_teams):
    given = leave_out(five_teams)

    assert [(left_out.lineage, left_out.figure) for left_out in given] == [(name, Figure.TIME) for name in "abcde"]
    assert sum(len(left_out.rows) for left_out in given) == 25


def test_learning_from_own_rows_lowers_the_error_and_narrows_the_range(five_teams):
    curve = learning_curve(five_teams, leave_out(five_teams), (0, 1, 3))
    means = {
        count: [np.mean([getattr(e, name) for e in curve if e.count == count]) for name in ("error", "width")]
        for count in (0, 1, 3)
    }

    assert means[0][0] > means[1][0] > means[3][0]
    assert means[0][1] > means[1][1] > means[3][1]


def test_a_lineage_with_too_few_rows_has_no_entry(five_teams):
    left_out = leave_out(five_teams)[0]

    assert predict_left_out(five_teams, left_out, (4,)) == []
    assert [entry.count for entry in predict_left_out(five_teams, left_out, (3,))] == [3]


def test_repeats_of_one_configuration_are_never_predicted_from_each_other():
    factors = {"a": 0.6, "b": 0.9, "c": 1.0, "d": 1.1}
    single = hierarchy([row for name, factor in factors.items() for row in of(name, factor, count=3)])
    repeated = hierarchy([row for name, factor in factors.items() for row in [*of(name, factor, count=3)] * 4])

    alone, often = (predict_left_out(given, leave_out(single)[0], (1, 2)) for given in (single, repeated))
    assert [entry.count for entry in often] == [entry.count for entry in alone] == [1]


def test_ranges_drawn_through_the_equations_are_about_those_of_the_lines(five_teams):
    given = leave_out(five_teams)
    drawn = drawn_left_out(five_teams, given, most=3)
    lines = learning_curve(five_teams, given, (0,))

    for from_draws, from_lines in zip(drawn, lines, strict=True):
        assert from_draws.width == pytest.approx(from_lines.width, rel=0.35)
        assert from_draws.error == pytest.approx(from_lines.error, abs=0.12)


def test_the_residual_of_a_left_out_row_is_that_of_the_others_population(five_teams):
    residuals = left_out_residuals(five_teams, leave_out(five_teams))

    assert len(residuals) == 25
    assert residuals["a-0"][0] > residuals["e-0"][0]  # the slowest team is predicted too fast, the fastest too slow
    assert all(sd > 0 for _, sd in residuals.values())
