"""A plan that is dearer than others close by says which number of GPUs mends that, and first where it is far dearer."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from planner.answer.plan import CurvePoint, Plan
from planner.evidence import Estimate
from planner.planning.advice.dearer import FAR_DEARER, cheaper_close_by, cost_share, far_dearer, has_costs
from planner.planning.estimate import estimate
from planner.rates.terms import Draws
from reports.text.messages import word
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


def plan_and_points(*others: tuple[int, float, float]) -> tuple[Plan, list[CurvePoint]]:
    """A plan on 320 GPUs for 20 days at $100,000, and points of its curve: GPUs, days, USD."""
    question = make_question(params="8B", gpus="96")
    answer = estimate(question, rates_and_prices(question), detailed=False)
    (plan,) = (plan for plan in answer.plans if plan.precision == "bf16")
    (point,) = (point for point in answer.curve if point.chosen)
    exactly = Estimate.exactly
    plan = replace(plan, gpus=320, duration_days=exactly(20.0), cost_usd=exactly(1e5))
    points = [
        replace(point, gpus=gpus, duration_days=exactly(days), cost_usd=exactly(usd), chosen=False)
        for gpus, days, usd in others
    ]
    return plan, [replace(point, gpus=320, duration_days=exactly(20.0), cost_usd=exactly(1e5)), *points]


@pytest.mark.parametrize(
    ("points", "named"),
    [
        ([(352, 15.0, 81e3), (512, 10.0, 79e3)], 352),
        ([(352, 15.0, 81e3), (336, 17.0, 82e3)], 336),  # hardly dearer, and closer
        ([(352, 15.0, 81e3), (336, 18.0, 94e3)], 352),
        ([(352, 17.0, 96e3)], None),  # less than 5% cheaper
        ([(512, 10.0, 79e3)], None),  # not close by
        ([(288, 21.0, 90e3)], 288),
        ([(256, 24.0, 90e3)], None),  # cheaper because it takes longer
        ([(352, 9.0, 49e3)], None),  # `far_dearer` warns
    ],
)
def test_a_number_close_by_that_is_clearly_cheaper_is_named(points, named):
    plan, curve = plan_and_points(*points)

    messages = [parts(message) for message in cheaper_close_by(plan, curve, math.inf)]

    assert [message["gpus"] for message in messages] == ([] if named is None else [named])
    assert not list(cheaper_close_by(plan, curve, 320)) or named == 288


@pytest.mark.parametrize("missed", ["in_time", "in_budget"])
def test_a_cheaper_number_that_misses_a_target_is_not_named(missed):
    plan, (chosen, other) = plan_and_points((352, 15.0, 81e3))

    assert not list(cheaper_close_by(plan, [chosen, replace(other, **{missed: False})], math.inf))


@pytest.mark.parametrize(
    ("days", "text"),
    [
        (15.0, "would cost 19% less than the 320 asked for, and take 15 days instead of 20 days: use `--gpus 352`"),
        (20.1, "would cost 19% less than the 320 asked for, in about the same time: use `--gpus 352`"),
    ],
)
def test_a_cheaper_number_is_told_with_its_saving_and_time(days, text):
    plan, curve = plan_and_points((352, days, 81e3))
    (message,) = cheaper_close_by(plan, curve, math.inf)

    assert word(message).endswith(text)


def test_deepseek_v3_on_320_h100_is_told_of_a_cheaper_number():
    question = make_question(model="deepseek-v3", params=None, gpus="320", precision="fp8")
    answer = estimate(question, rates_and_prices(question), detailed=False)
    (message,) = (parts(warning) for warning in answer.warnings if warning.key == "warning.cheaper_near")
    plan, other = (next(p for p in answer.curve if p.gpus == gpus) for gpus in (320, message["gpus"]))

    assert 256 <= message["gpus"] <= 400
    assert message["saved"] == pytest.approx(1.0 - other.cost_usd.mid / plan.cost_usd.mid)
    assert message["saved"] >= 0.05


@pytest.mark.parametrize(("usd", "own_usd", "share"), [(0.0, 0.01, 0.825), (0.01, 0.0, 0.825), (50.0, 100.0, 0.5)])
def test_costs_of_a_few_cents_are_not_compared(usd, own_usd, share):
    plan, (_, other) = plan_and_points((352, 15.0, usd))  # 352 for 15 days: 82.5% of the GPU-hours
    plan = replace(plan, cost_usd=Estimate.exactly(own_usd))

    assert cost_share(other, plan) == pytest.approx(share)
    assert has_costs(other, plan) is (share == 0.5)
