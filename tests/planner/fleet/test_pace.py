"""How far each member is from the others."""

from __future__ import annotations

from math import log

import pytest

from planner.fleet.pace import above_median, against_median, far_above

NINE = {f"node{i}": 0.0 for i in range(1, 9)} | {"node9": 0.05}


def judged(figures: dict[str, float], points: int = 10) -> dict[str, tuple[float, int]]:
    return {name: (value, points) for name, value in figures.items()}


def test_a_member_is_compared_with_the_median_at_each_point_and_takes_the_median_of_that():
    table = {
        "a": {"x": 1.0, "y": 1.0, "z": 2.0},
        "b": {"x": 10.0, "y": 10.0, "z": 20.0},
        "c": {"x": 5.0, "y": 5.0, "z": 0.1},  # one odd point moves nothing
    }

    distances = against_median(table)

    assert distances["x"] == (0.0, 3)
    assert distances["z"] == (pytest.approx(log(2.0)), 3)


def test_a_difference_keeps_the_unit():
    assert above_median({"a": {"x": 60.0, "y": 62.0, "z": 75.0}})["z"] == (13.0, 1)


def test_a_point_that_few_members_have_says_nothing():
    table = {"a": {"x": 1.0}, "b": {"x": 1.0, "y": 2.0}, "c": dict.fromkeys("xyzuvw", 1.0)}

    assert against_median(table) == dict.fromkeys("xyzuvw", (0.0, 1))


def test_one_among_equals_is_far_beyond_the_least_effect_and_not_below_it():
    assert far_above(judged(NINE), 0.02, 0.0) == {"node9": 0.05}
    assert far_above(judged(NINE), 0.06, 0.0) == {}


def test_where_the_members_differ_a_lot_more_is_needed_to_be_far():
    spread = {f"node{i}": 0.02 * (i % 5) for i in range(1, 9)} | {"node9": 0.1}

    assert far_above(judged(spread), 0.02, 0.01) == {}


def test_few_members_are_not_told_by_their_own_spread_alone():
    """Three members in step have no spread at all; the fourth is far only beyond what GPUs usually differ by."""
    equal_members = {"a": 0.0, "b": 0.0, "c": 0.0}

    assert far_above(judged(equal_members | {"d": 0.025}), 0.02, 0.01) == {}
    assert far_above(judged(equal_members | {"d": 0.03}), 0.02, 0.01) == {"d": 0.03}


def test_nobody_is_far_among_three_members_or_by_two_points():
    assert far_above(judged({"a": 0.0, "b": 0.0, "c": 1.0}), 0.02, 0.01) == {}
    assert far_above(judged(NINE, points=2), 0.02, 0.01) == {}
