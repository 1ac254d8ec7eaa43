"""Policies and schedules between two precisions, with figures that a pencil gives."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.answer.plan import Saving
from planner.answer.training_shown import MixturePoint
from planner.evidence import Estimate
from planner.safety.mixture import mixed, placed
from tests.reports import sample


def point(name: str, share: float, loss: float | None, half: float | None = 0.0, **more: object) -> MixturePoint:
    """A point whose loss is known to within `half`; None: without an error."""
    known = None if loss is None or half is None else Estimate(low=loss - half, mid=loss, high=loss + half)
    values = {"precision": "fp8", "high": "bf16", "steps": 20, "kind": "schedule", "margin": 0.001} | more
    return MixturePoint(
        name=name, low_share_ratio=share, loss_change=loss, loss_range=known, **values,  # type: ignore[arg-type]
    )  # fmt: skip


def days() -> dict[str, Estimate]:
    return {plan.precision: plan.duration_days for plan in sample.answer().plans if plan.duration_days}


def on_front(*points: MixturePoint, **options: object) -> list[bool]:
    return [row.on_front for row in placed(points, sample.answer().plans, **options)]  # type: ignore[arg-type]


def test_a_fifth_of_the_steps_in_the_higher_precision_takes_a_fifth_of_its_time():
    high, low = Estimate(low=8.0, mid=10.0, high=15.0), Estimate(low=5.0, mid=6.0, high=10.0)

    fifth = mixed(high, low, 0.8)
    assert (fifth.low, fifth.mid, fifth.high) == pytest.approx((5.6, 6.8, 11.0))
    assert mixed(high, low, 0.0) == high
    assert mixed(high, low, 1.0) == low


@given(st.floats(1, 100), st.floats(1, 100), st.floats(0, 1))
def test_a_mixture_lies_between_its_two_plans(high, low, share):
    mid = mixed(Estimate.exactly(high), Estimate.exactly(low), share).mid

    assert min(high, low) * (1 - 1e-12) <= mid <= max(high, low) * (1 + 1e-12)


def test_the_front_holds_what_nothing_surely_beats_and_the_time_has_its_range():
    plans, known = sample.answer().plans, days()
    points = placed(
        [point("all_high", 0.0, 0.0), point("all_low", 1.0, 0.01), point("high_first", 0.8, 0.002),
         point("high_last", 0.8, 0.012)], plans,
    )  # fmt: skip

    assert [row.on_front for row in points] == [True, True, True, False]
    assert points[2].duration_days == mixed(known["bf16"], known["fp8"], 0.8)
    assert points[0].duration_days == known["bf16"]


def test_a_difference_within_its_error_drives_nothing_off_the_front():
    # what pushed all_high off the front before: -0.0036 that is noise
    assert on_front(point("all_high", 0.0, 0.0), point("all_low", 1.0, -0.0036, 0.05)) == [True, True]
    assert on_front(point("all_high", 0.0, 0.0), point("all_low", 1.0, -0.5)) == [True, True]  # never that
    # 0.010 apart, error hypot(0.006, 0.009) = 0.0108
    assert on_front(point("high_first", 0.8, 0.002, 0.006), point("high_last", 0.8, 0.012, 0.009)) == [True, True]


def test_two_that_differ_by_more_than_both_errors_together_are_told_apart():
    # 0.010 apart, error hypot(0.006, 0.006) = 0.0085
    assert on_front(point("high_first", 0.8, 0.002, 0.006), point("high_last", 0.8, 0.0120, 0.006)) == [True, False]


def test_what_takes_longer_for_a_loss_that_is_equal_within_the_margin_leaves_the_front():
    wide = {"margin": 0.02}
    points = (point("all_low", 1.0, 0.001, 0.004, **wide), point("high_first", 0.8, 0.0, 0.004, **wide))

    assert on_front(*points) == [True, False]
    assert on_front(*(replace(row, margin=0.002) for row in points)) == [True, True]


def test_an_error_that_nobody_knows_excludes_nothing():
    assert on_front(point("all_low", 1.0, 0.0, None), point("high_last", 0.8, 0.5, None)) == [True, True]


def test_a_policy_and_schedules_are_not_held_against_each_other():
    policy = point("policy", 0.9, 0.3, kind="policy")

    assert on_front(policy, point("all_low", 1.0, 0.0)) == [True, True]
    assert on_front(policy, point("all_low", 1.0, 0.0, kind="policy")) == [False, True]
    assert on_front(policy, point("all_low", 1.0, 0.0, kind="policy", steps=191)) == [True, True]


def test_where_it_is_not_sure_that_the_lower_plan_is_sooner_time_decides_nothing():
    gpu = sample.answer().plans[0].gpu
    unsure = Saving(
        view="same_gpus", gpu=gpu, metric="duration_days", from_="bf16", to="fp8", low=-0.1, mid=0.2, high=0.4
    )
    points = (point("all_low", 1.0, 0.0), point("high_first", 0.8, 0.0))

    assert on_front(*points) == [True, False]
    assert on_front(*points, savings=[unsure]) == [True, True]


def test_points_that_are_alike_stand_on_the_front_together():
    assert on_front(point("all_low", 1.0, 0.01), point("policy", 1.0, 0.01)) == [True, True]


def test_a_precision_without_a_plan_has_no_time_and_what_diverged_is_not_on_the_front():
    (unplanned,) = placed([point("all_low", 1.0, -0.5, precision="nvfp4")], sample.answer().plans)

    assert (unplanned.duration_days, unplanned.on_front) == (None, False)
    assert on_front(point("all_low", 1.0, None)) == [False]
