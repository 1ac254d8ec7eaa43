"""Savings: every pair of precisions, from the same draws, as a share and as an amount."""

from __future__ import annotations

from functools import cache
from itertools import permutations

import pytest

from planner.answer.plan import LOWER_IS_BETTER, Answer, Plan, Saving
from planner.planning.estimate import estimate
from tests.planner.build import make_question, prices, rates_and_prices, unknown_price

ASKED = make_question(params="8B", precision="bf16", gpus="64")


@cache
def answered() -> Answer:
    return estimate(ASKED, rates_and_prices(ASKED))


def plans() -> dict[str, Plan]:
    return {plan.precision: plan for plan in answered().plans}


def savings() -> dict[tuple[str, str, str], Saving]:
    return {(s.metric, s.from_, s.to): s for s in answered().savings if s.view == "same_gpus"}


def test_every_pair_of_precisions_has_its_saving_in_every_figure_and_view():
    pairs = {(s.view, s.metric, s.from_, s.to) for s in answered().savings}
    fitting = [plan.precision for plan in answered().plans if plan.fits]

    assert len(fitting) == 5
    assert {(v, m, f, t) for v, m, f, t in pairs if v == "same_gpus"} == {
        ("same_gpus", metric, *pair) for metric in LOWER_IS_BETTER for pair in permutations(fitting, 2)
    }


def test_there_and_back_is_the_same_saving():
    # to = (1 - s) from, so that from = to / (1 - s): the other way round it is 1 - 1 / (1 - s), draw by draw
    forward, back = savings()["cost_usd", "bf16", "fp8"], savings()["cost_usd", "fp8", "bf16"]

    assert forward.low > 0
    assert back.mid == pytest.approx(1 - 1 / (1 - forward.mid), rel=1e-9)
    assert back.low == pytest.approx(1 - 1 / (1 - forward.high), rel=1e-3)  # between two draws


def test_an_amount_is_the_difference_of_the_two_plans_and_its_range_is_that_of_common_draws():
    saved = savings()["cost_usd", "bf16", "fp8"]
    bf16, fp8 = plans()["bf16"].cost_usd, plans()["fp8"].cost_usd

    assert saved.amount.mid == pytest.approx(bf16.mid - fp8.mid, rel=1e-12)
    assert 0 < saved.amount.low < saved.amount.mid < saved.amount.high < bf16.high
    assert savings()["gpu_hours", "bf16", "fp8"].amount.mid == pytest.approx(
        plans()["bf16"].gpu_hours.mid - plans()["fp8"].gpu_hours.mid, rel=1e-12
    )


def test_without_a_price_the_saving_is_that_of_gpu_hours():
    unpriced = estimate(ASKED, rates_and_prices(ASKED, prices={gpu: unknown_price(gpu) for gpu in prices(ASKED)}))
    metrics = {saving.metric for saving in unpriced.savings}

    assert metrics == set(LOWER_IS_BETTER) - {"cost_usd"}
    assert all(saving.amount is not None for saving in unpriced.savings if saving.metric == "gpu_hours")


def test_a_run_of_seconds_whose_cost_rounds_to_nothing_has_a_plan_and_no_share_of_it():
    question = make_question(params="100M", gpus="1", tokens="1M")
    answer = estimate(question, rates_and_prices(question))
    plan = next(plan for plan in answer.plans if plan.precision == "bf16")

    assert plan.cost_usd is not None
    assert plan.cost_usd.mid == 0
    assert plan.gpu_hours.mid > 0
    assert "bf16" not in {s.from_ for s in answer.savings if s.metric == "cost_usd"}
    assert "bf16" in {s.from_ for s in answer.savings if s.metric == "gpu_hours"}
