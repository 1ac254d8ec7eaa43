"""Policies and schedules between two precisions, with figures that a pencil gives."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.answer.training_shown import MixturePoint
from planner.safety.mixture import mixed, placed
from tests.reports import sample


def point(name: str, share: float, loss: float, **more: object) -> MixturePoint:
    values = {"precision": "fp8", "high": "bf16", "steps": 20} | more
    return MixturePoint(name=name, low_share_ratio=share, loss_change=loss, **values)  # type: ignore[arg-type]


def days() -> dict[str, float]:
    return {plan.precision: plan.duration_days.mid for plan in sample.answer().plans if plan.duration_days}


def test_a_fifth_of_the_steps_in_the_higher_precision_takes_a_fifth_of_its_time():
    assert mixed(10.0, 6.0, 0.8) == pytest.approx(6.8)
    assert mixed(10.0, 6.0, 0.0) == 10.0
    assert mixed(10.0, 6.0, 1.0) == 6.0


@given(st.floats(1, 100), st.floats(1, 100), st.floats(0, 1))
def test_a_mixture_lies_between_its_two_plans(high, low, share):
    assert min(high, low) * (1 - 1e-12) <= mixed(high, low, share) <= max(high, low) * (1 + 1e-12)


def test_the_front_holds_what_nothing_beats_in_time_and_loss():
    plans, known = sample.answer().plans, days()
    points = placed(
        [point("all_high", 0.0, 0.0), point("all_low", 1.0, 0.01), point("high_first", 0.8, 0.002),
         point("high_last", 0.8, 0.012)], plans,
    )  # fmt: skip

    assert [row.on_front for row in points] == [True, True, True, False]
    assert points[2].duration_days == pytest.approx(0.8 * known["fp8"] + 0.2 * known["bf16"])
    assert points[0].duration_days == pytest.approx(known["bf16"])


def test_points_that_are_alike_stand_on_the_front_together():
    points = placed([point("all_low", 1.0, 0.01), point("policy", 1.0, 0.01)], sample.answer().plans)

    assert [row.on_front for row in points] == [True, True]


def test_a_precision_without_a_plan_has_no_time_and_is_not_on_the_front():
    (alone,) = placed([point("all_low", 1.0, -0.5, precision="nvfp4")], sample.answer().plans)

    assert (alone.duration_days, alone.on_front) == (None, False)
