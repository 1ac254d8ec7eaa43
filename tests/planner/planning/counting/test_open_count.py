"""A number of GPUs that is left open: what is planned is what a comparison of GPUs counts on, and it says why."""

from __future__ import annotations

import pytest

from planner.errors import NoPlanError
from planner.planning.case import Case
from planner.planning.estimate import estimate
from planner.planning.requested import asked_plan, offered
from planner.question.question import Question
from planner.rates.terms import Draws
from tests.planner.build import case_for, make_question, rates_and_prices

DRAWS = Draws(count=101, seed=0)
TUNED = {"model": "llama-3.1-8b", "params": None, "examples": "50000", "tokens": None}
QUESTIONS = [
    {"params": "70B", "precision": "fp8", "deadline": "30d"},
    {"params": "7B", "budget": "100k"},
    {"params": "7B", "deadline": "10d", "budget": "100k"},
    {"params": "7B", "deadline": "10d", "budget": "1k"},
    {"params": "8B", "gpus": "64"},
    TUNED | {"method": "sft"},
    TUNED | {"method": "sft", "stack": "hf", "gpu": "rtx-4090"},
    TUNED | {"method": "sft", "stack": "hf", "gpu": "l4"},
    TUNED | {"method": "qlora", "gpu": "rtx-4090"},
    TUNED | {"method": "lora", "budget": "50"},
    TUNED | {"method": "lora", "max_gpus": "2"},
]


def question_and_case(asked: dict[str, str]) -> tuple[Question, Case]:
    question = make_question(**asked)
    return question, case_for(question)


@pytest.mark.parametrize("asked", QUESTIONS)
def test_what_is_offered_is_what_would_be_planned(asked):
    question, case = question_and_case(asked)
    choice = offered(question, case, DRAWS)
    try:
        plan = asked_plan(question, case, DRAWS).plan
    except NoPlanError:
        assert choice is None
        return

    if choice is None:  # a plan at a risk is shown with its warning, and is no offer
        assert plan.memory_risk > question.memory_risk
    else:
        assert (choice.gpus, choice.winner.at(0)) == (plan.gpus, plan.layout)


@pytest.mark.parametrize(
    ("asked", "why"),
    [
        ({"params": "7B", "deadline": "20d"}, "note.fewest_nodes"),
        ({"params": "7B", "budget": "100k"}, "note.soonest_in_budget"),
        (TUNED | {"method": "sft"}, "note.fewest_gpus"),
        (TUNED | {"method": "lora", "budget": "50"}, "note.within_the_hour"),
        (TUNED | {"method": "qlora", "gpu": "rtx-4090"}, "note.sold_alone"),
    ],
)
def test_an_answer_says_what_decided_how_many_gpus_there_are(asked, why):
    question = make_question(**asked)
    shown = estimate(question, rates_and_prices(question), detailed=False).question["gpus"]

    assert (shown.source, shown.note.key) == ("derived", why)


def test_a_whole_node_is_taken_where_it_is_cheaper_and_sooner_than_part_of_it():
    tuned = TUNED | {"model": "qwen2.5-7b", "method": "dpo", "gpu": "a100-sxm4-80gb", "stack": "hf"}
    part, whole, open_ = (asked_plan(*question_and_case(tuned | given), DRAWS).plan for given in SIZES_OF_A_NODE)

    assert whole.gpu_hours.mid < 0.95 * part.gpu_hours.mid
    assert open_.gpus == 8


SIZES_OF_A_NODE = ({"gpus": "4"}, {"gpus": "8"}, {"deadline": "8h"})


def test_no_view_takes_more_gpus_than_the_user_allows():
    question = make_question(params="70B", tokens="300B", max_gpus="512")
    plans = {plan.precision: plan for plan in estimate(question, rates_and_prices(question)).same_deadline}

    assert plans["fp32"].why_not.key == "error.too_slow_within"
    assert max(plan.gpus for plan in plans.values()) <= 512


def test_a_default_limit_of_what_a_budget_buys_does_not_bind_the_other_precisions():
    question = make_question(params="70B", budget="4M")
    answer = estimate(question, rates_and_prices(question))
    asked = next(plan for plan in answer.plans if plan.precision == question.policy.precision)
    tf32 = next(plan for plan in answer.same_deadline if plan.precision == "tf32")

    assert asked.gpus <= 1024 < tf32.gpus
