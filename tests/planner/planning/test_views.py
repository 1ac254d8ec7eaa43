"""The two views of a precision beside the asked one."""

from __future__ import annotations

import pytest

from planner.planning.case import Case
from planner.planning.choice import best_given
from planner.planning.estimate import estimate
from planner.planning.targets import at_confidence
from planner.planning.views import in_time, on_same_gpus
from planner.question.question import Question
from planner.rates.terms import Draws
from planner.units import DAY_S
from tests.planner.build import case_for, make_question, rates_and_prices

DRAWS = Draws(count=101, seed=0)


def question_and_case(**asked: str) -> tuple[Question, Case]:
    question = make_question(**asked)
    return question, case_for(question)


@pytest.mark.parametrize("gpus", [64, 72, 100])
def test_on_the_same_gpus_every_layout_is_looked_at_that_a_given_number_has(gpus):
    question, case = question_and_case(params="8B", precision="bf16", global_batch="1000")
    planned = on_same_gpus(case, question, gpus, DRAWS)

    assert planned.plan.layout == best_given(case, question.fixed, gpus).winner.at(0)


@pytest.mark.parametrize("deadline_days", [10.0, 30.0])
def test_by_a_deadline_a_plan_meets_it_and_takes_no_more_gpus_than_the_user_allows(deadline_days):
    question, case = question_and_case(params="8B", max_gpus="64")
    planned = in_time(case, question, deadline_days * DAY_S, DRAWS)

    if planned.plan.fits:
        assert at_confidence(planned.draws["duration_days"], question.confidence_ratio) <= deadline_days
        assert planned.plan.gpus <= 64
    else:
        assert planned.plan.why_not.key == "error.too_slow_within"


def test_other_precisions_have_the_depths_of_the_plan():
    question = make_question(model="deepseek-v3", params=None, gpu="b200-sxm-180gb", gpus="1000", precision="fp8")
    plans = {plan.precision: plan for plan in estimate(question, rates_and_prices(question), detailed=False).plans}

    assert plans["fp8"].layout.pp == plans["bf16"].layout.pp == 25
    assert plans["fp8"].gpu_hours.mid < plans["bf16"].gpu_hours.mid


def test_a_micro_batch_that_is_fixed_does_not_end_the_second_view():
    question = make_question(params="70B", precision="fp8", gpus="768", global_batch="1152", micro_batch="3")
    answer = estimate(question, rates_and_prices(question))

    assert all(plan.layout.micro_batch == 3 for plan in answer.plans if plan.fits)
    assert any(plan.fits for plan in answer.same_deadline)


@pytest.mark.parametrize("asked", [{"params": "7B", "gpus": "64"}, {"params": "7B", "gpus": "100"}])
def test_by_the_asked_plan_s_own_duration_no_precision_takes_far_more_gpus_than_in_proportion(asked):
    question = make_question(**asked)
    answer = estimate(question, rates_and_prices(question))
    (base,) = (plan for plan in answer.same_deadline if plan.precision == "bf16")
    on_same = {plan.precision: plan for plan in answer.plans}

    for plan in answer.same_deadline:
        ratio = on_same[plan.precision].duration_days.mid / base.duration_days.mid
        assert plan.gpus <= max(1.4 * ratio * base.gpus, base.gpus + 16), plan.precision
        assert question.batch_band[0] <= plan.layout.global_batch <= question.batch_band[1]


def test_what_is_hardly_slower_than_the_asked_plan_ends_as_soon():
    question = make_question(model="llama-3.1-8b", params=None, method="sft", gpus="8")
    answer = estimate(question, rates_and_prices(question))
    by_precision = {plan.precision: plan for plan in answer.same_deadline}

    assert by_precision["fp16"].gpus == by_precision["bf16"].gpus == 8
    assert by_precision["fp16"].layout.global_batch == by_precision["bf16"].layout.global_batch


def test_a_deadline_that_is_asked_for_is_met_by_every_precision_that_has_a_plan():
    question = make_question(params="7B", deadline="5d")

    for plan in estimate(question, rates_and_prices(question)).same_deadline:
        assert not plan.fits or plan.probability.deadline >= question.confidence_ratio
