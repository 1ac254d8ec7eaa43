"""A lower precision that is slower for want of memory says so."""

from __future__ import annotations

import re

import pytest

from planner.parallelism.search import FixedLayout
from planner.planning.advice.held_back import held_back
from planner.planning.case import Case
from planner.planning.choice import best_on
from planner.planning.estimate import estimate
from planner.planning.ranges import Ranged, ranged_plan
from planner.rates.terms import Draws
from reports.text.messages import word
from tests.planner.build import case_of, make_question, rates_and_prices
from tests.planner.planning.advice.test_warnings import RISKY

DRAWS = Draws(count=101, seed=0)


def planned(memory_risk: str) -> tuple[list[Case], list[Ranged]]:
    asked = {name: value for name, value in RISKY[1].items() if name != "precision"}
    cases = [case_of(**asked, precision=name, memory_risk=memory_risk) for name in ("fp8", "bf16")]
    fixed, gpus = FixedLayout(on_given_gpus=True), int(asked["gpus"])
    return cases, [ranged_plan(case, best_on(case, fixed, gpus), DRAWS) for case in cases]


@pytest.mark.parametrize("asked", [0, 1])
def test_a_lower_precision_that_memory_makes_slower_says_which_setting_it_lacks(asked):
    cases, plans = planned("5%")
    days = [plan.plan.duration_days.mid for plan in plans]
    (text,) = map(word, held_back(cases[asked], cases, plans))

    assert days[0] > days[1]
    assert re.match(
        r"L40S: FP8 takes longer than BF16 because memory is short: with PP16(, VP\d+)? and ZeRO-0, "
        r"as BF16 uses, instead of PP1(, VP1)? and ZeRO-3, it would run out with a probability of \d+%",
        text,
    )


def test_nothing_is_said_where_the_lower_precision_has_the_faster_layout():
    cases, plans = planned("15%")

    assert list(held_back(cases[0], cases, plans)) == []


def test_so_it_is_where_memory_is_so_short_that_no_layout_of_the_lower_one_is_safe():
    question = make_question(
        model="mixtral-8x7b", params=None, method="sft", stack="hf", gpu="h200-sxm-141gb", gpus="8", examples="5000"
    )
    answer = estimate(question, rates_and_prices(question), detailed=False)
    fp8, bf16 = (next(plan for plan in answer.plans if plan.precision == name) for name in ("fp8", "bf16"))
    (message,) = (warning for warning in answer.warnings if warning.key == "warning.held_back")

    assert fp8.memory_risk > question.memory_risk
    assert fp8.duration_days.mid > 2 * bf16.duration_days.mid
    assert float(str(dict(message.values)["risk"])) > fp8.memory_risk
