"""A plan that is far dearer than others close by says first which number of GPUs mends that."""

from __future__ import annotations

from dataclasses import replace

import pytest

from planner.planning.advice.dearer import FAR_DEARER, far_dearer
from planner.planning.estimate import estimate
from planner.rates.terms import Draws
from tests.planner.build import case_of, make_question, parts, rates_and_prices

DRAWS = Draws(count=101, seed=0)


@pytest.mark.parametrize("dearer", [1.0, 1.9, 2.2, 8.0])
def test_a_plan_of_more_than_twice_the_cost_names_a_number_that_is_planned_for_less_than_half(dearer):
    asked = {"params": "8B", "gpus": "96"}
    question = make_question(**asked)
    answer = estimate(question, rates_and_prices(question), detailed=False)
    (plan,) = (plan for plan in answer.plans if plan.precision == "bf16")
    cost, days = plan.cost_usd, plan.duration_days
    worse = replace(
        plan,
        cost_usd=replace(cost, mid=cost.mid * dearer, high=cost.high * dearer),
        duration_days=replace(days, mid=days.mid * dearer, high=days.high * dearer),
    )

    warnings = far_dearer(question, case_of(**asked), worse, answer.curve, DRAWS)

    cheapest = min(point.cost_usd.mid for point in answer.curve if not point.chosen)
    assert bool(warnings) is (worse.cost_usd.mid >= FAR_DEARER * cheapest)
    for message in map(parts, warnings):
        named_question = make_question(**asked | {"gpus": str(message["gpus"])})
        plans = estimate(named_question, rates_and_prices(named_question), detailed=False).plans
        (other,) = (plan for plan in plans if plan.precision == "bf16")
        assert other.cost_usd.mid < 0.55 * worse.cost_usd.mid
        assert message["share"] == pytest.approx(other.cost_usd.mid / worse.cost_usd.mid, rel=0.1)


def test_it_is_the_first_that_an_answer_warns_of():
    question = make_question(model="deepseek-v3", params=None, gpus="240")
    answer = estimate(question, rates_and_prices(question), detailed=False)
    (plan,) = (plan for plan in answer.plans if plan.precision == "bf16")
    cheaper = [point for point in answer.curve if point.cost_usd.mid * FAR_DEARER < plan.cost_usd.mid]

    assert (answer.warnings[0].key == "warning.far_dearer") is bool(cheaper)


def test_a_number_of_gpus_that_is_named_as_cheaper_is_not_named_again_as_sooner():
    question = make_question(params="100M", gpus="1024", tokens="100B")
    answer = estimate(question, rates_and_prices(question), detailed=False)
    named = [parts(warning) for warning in answer.warnings if warning.key == "warning.far_dearer"]
    sooner = [parts(warning) for warning in answer.warnings if warning.key == "warning.fewer_gpus"]
    plan = next(point for point in answer.curve if point.chosen)
    other = next(point for point in answer.curve if point.gpus == named[0]["gpus"])

    assert other.gpus < plan.gpus
    assert other.duration_days.mid < plan.duration_days.mid
    assert named[0]["gpus"] not in {message["fewer"] for message in sooner}
