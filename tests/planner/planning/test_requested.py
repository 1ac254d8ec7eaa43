"""The plan is not dominated: no number of GPUs and no batch close to its own is clearly sooner and cheaper."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest

from planner.answer.plan import Answer
from planner.errors import Message, NoPlanError, UsageError
from planner.parallelism.search import FixedLayout
from planner.planning.case import Case, make_case
from planner.planning.choice import best_given, best_on, expected_s_per_sequence, tokens_ratio
from planner.planning.estimate import estimate
from planner.planning.fitting.lean import MORE_MEMORY
from planner.planning.fitting.shortage import fits_on
from planner.planning.ranges import Ranged
from planner.planning.requested import asked_plan
from planner.planning.targets import at_confidence
from planner.question.batch import batch_band
from planner.rates.terms import Draws
from planner.training.recipe import Recipe
from reports.text.messages import word
from tests.planner.build import make_question, parts, price, prices, rates_and_prices, site, unknown_price

CLOSE = 0.03
"""What simpler layouts and fewer GPUs may cost: 2 % each at the mean over draws, rarely both."""


def planned(**asked: str) -> tuple[Case, Ranged]:
    question = make_question(**asked)
    case = make_case(question, question.policy, question.clusters[0], price(), site())
    return case, asked_plan(question, case, Draws(count=101, seed=0))


def figures(case: Case, gpus: int, recipe: Recipe) -> tuple[float, float, bool]:
    """Expected seconds and GPU-seconds per sequence of what is planned on a number of GPUs, and whether it is safe.

    Weighed by the tokens that a loss takes with its batch, over those with the recipe's.
    """
    choice = best_given(case, FixedLayout(), gpus)
    if choice.best is None:
        return np.inf, np.inf, False
    pace_s = float((expected_s_per_sequence(case, choice.winner) * tokens_ratio(choice.winner, recipe))[0])
    return pace_s, pace_s * gpus, choice.safe


@pytest.mark.parametrize(
    "asked",
    [
        {"params": "70B", "precision": "fp8", "deadline": "30d"},
        {"params": "8B", "deadline": "10d"},
        {"params": "13B", "deadline": "7d", "precision": "fp8"},
        {"params": "8B", "budget": "60k"},
        {"model": "deepseek-v3", "tokens": "5e11", "deadline": "45d"},
        {"params": "1T", "tokens": "1e12", "gpu": "gb200", "precision": "fp8", "deadline": "200d"},
    ],
)
def test_no_neighbour_in_count_or_batch_is_sooner_and_cheaper(asked):
    case, plan = planned(**asked)
    gpus, batch = plan.plan.gpus, plan.plan.layout.global_batch
    pace_s, gpu_s, safe = figures(case, gpus, case.recipe)
    assert safe
    around = [gpus + 8 * nodes for nodes in (-8, -4, -2, -1, 1, 2, 4, 8) if gpus + 8 * nodes > 0]
    neighbours = {f"{n} GPUs": figures(case, n, case.recipe) for n in (*around, round(gpus / 8 * 1.125) * 8)}
    least, most = batch_band(case.recipe.global_batch, case.recipe.critical_batch)
    step = plan.plan.layout.dp * plan.plan.layout.micro_batch
    for other in {batch - step, batch + step, case.recipe.global_batch} - {batch}:
        if least <= other <= most:
            exactly = replace(case, recipe=replace(case.recipe, global_batch=other, batch_band=None))
            neighbours[f"a batch of {other}"] = figures(exactly, gpus, case.recipe)

    assert len(neighbours) > 5
    dominating = {
        name: (other_s / pace_s, other_gpu_s / gpu_s)
        for name, (other_s, other_gpu_s, other_safe) in neighbours.items()
        if other_safe and other_s < (1 - CLOSE) * pace_s and other_gpu_s < (1 - CLOSE) * gpu_s
    }
    assert not dominating


TUNED = {"model": "llama-3.1-8b", "method": "sft", "params": None}
"""The shared question with a model that is tuned."""


def tuned(**asked: str) -> tuple[Case, Ranged]:
    return planned(**(TUNED | asked))


@pytest.mark.parametrize(("budget", "tokens"), [(20, "20M"), (60, "200M"), (600, "2B")])
def test_to_fine_tune_a_budget_buys_an_end_within_the_hour_or_the_soonest_as_it_does_to_pre_train(budget, tokens):
    asked = TUNED | {"budget": str(budget), "tokens": tokens, "gpu": "h100-sxm5-80gb"}
    case, plan = planned(**asked)
    fixed, draws = make_question(**asked).fixed, Draws(count=101, seed=0)
    choices = [best_on(case, fixed, gpus) for gpus in (1, 2, 4, 8, 16, 32, 64)]
    drawn = {choice.gpus: case.evaluate(choice.winner, draws) for choice in choices if choice.safe}
    paid = [gpus for gpus, figures in drawn.items() if at_confidence(figures.cost_usd, 0.8) <= budget]
    soon = [gpus for gpus in paid if at_confidence(drawn[gpus].wall_s, 0.8) <= 3600.0]

    assert paid
    if soon:
        assert plan.plan.gpus == min(soon)
    else:
        wall_s = {gpus: float(np.median(drawn[gpus].wall_s)) for gpus in paid}
        assert plan.plan.gpus == min(paid, key=lambda gpus: wall_s[gpus])


def test_to_fine_tune_a_part_of_a_node_may_be_all_that_a_budget_or_a_limit_allows():
    _, fewest = tuned()
    _, limited = tuned(budget="100", max_gpus="4")

    assert fewest.plan.gpus < 8
    assert limited.plan.gpus == 4


def test_to_fine_tune_within_a_deadline_the_fewest_gpus_are_taken_and_never_more_than_allowed():
    assert tuned(budget="1000", deadline="30d")[1].plan.gpus == tuned()[1].plan.gpus
    with pytest.raises(NoPlanError):
        tuned(max_gpus="2")


def with_unpriced(unpriced: tuple[str, ...], **asked: str) -> Answer:
    question = make_question(params="8B", **asked)
    price_by_gpu = prices(question) | {gpu: unknown_price(gpu) for gpu in unpriced}
    known = rates_and_prices(question, prices=price_by_gpu)
    return estimate(question, known, created_at="2026-11-20", detailed=False)


def test_a_gpu_without_a_price_keeps_its_row_beside_others_that_are_held_to_a_budget():
    gpus = "mi300x-192gb,h100-sxm5-80gb"
    plans = {p.gpu: p for p in with_unpriced(("mi300x-192gb",), gpu=gpus, budget="100k").plans if p.precision == "bf16"}

    assert plans["h100-sxm5-80gb"].fits
    assert not plans["mi300x-192gb"].fits
    why_not = parts(plans["mi300x-192gb"].why_not)
    assert (why_not["key"], why_not["gpu"]) == ("error.budget_without_price", "mi300x-192gb")
    assert why_not["why"] == unknown_price("mi300x-192gb").basis


@pytest.mark.parametrize("gpu", ["mi300x-192gb", "mi300x-192gb,mi325x-256gb"])
def test_a_budget_and_no_price_at_all_is_wrong_usage(gpu):
    with pytest.raises(UsageError) as caught:
        with_unpriced(tuple(gpu.split(",")), gpu=gpu, budget="100k")

    assert caught.value.exit_code == 2
    assert parts(caught.value.message)["key"] == "error.budget_without_price"


def test_of_a_gpu_without_a_price_and_one_that_is_too_dear_the_latter_is_the_error():
    with pytest.raises(NoPlanError) as caught:
        with_unpriced(("mi300x-192gb",), gpu="mi300x-192gb,h100-sxm5-80gb", budget="100")

    assert parts(caught.value.message)["key"] == "error.too_dear"


def flags(way: Message) -> dict[str, str]:
    """What one way of a hint asks for, beside the GPUs given."""
    return dict(re.findall(r"--(\w+) ([\d.]+d?)", word(way)))


@pytest.mark.parametrize(
    ("asked", "error", "hint", "ways"),
    [
        ({"budget": "30k", "deadline": "5d"}, "error.over_both", "hint.none_holds_both", 2),
        ({"budget": "67k", "deadline": "2.5d"}, "error.over_deadline", "hint.none_holds_both", 3),
        ({"budget": "200k", "deadline": "5d"}, "error.over_deadline", "hint.holds_both", 2),
    ],
)
def test_a_plan_that_misses_a_target_of_two_is_told_what_holds_both(asked, error, hint, ways):
    given = {"params": "13B", "gpus": "64"} | asked
    with pytest.raises(NoPlanError) as caught:
        planned(**given)
    hint_parts = parts(caught.value.hint)

    assert (caught.value.message.key, hint_parts["key"], len(hint_parts["ways"])) == (error, hint, ways)
    for way in hint_parts["ways"]:
        assert flags(way)
        planned(**(given | flags(way)))  # holds both, or raises


def test_a_number_of_gpus_that_does_not_split_is_refused_with_the_next_that_do():
    with pytest.raises(NoPlanError) as caught:
        planned(params="70B", gpus="773")
    assert parts(caught.value.hint) == {"key": "hint.splits_near", "fewer": 768, "more": 776}

    with pytest.raises(NoPlanError) as caught:
        planned(params="70B", gpus="8")
    assert parts(caught.value.hint)["key"] == "hint.fits_on"
    assert planned(params="70B", gpus=str(parts(caught.value.hint)["gpus"]))[1].plan.memory_risk <= 0.05


def pace_s(case: Case, plan: Ranged) -> float:
    """Expected seconds per sequence of a plan."""
    assert plan.choice is not None
    return float(expected_s_per_sequence(case, plan.choice.winner)[0])


@pytest.mark.parametrize(
    ("asked", "target"),
    [
        ({"params": "13B", "precision": "fp8"}, {"deadline": "7d"}),
        (
            {"model": "llama-3.1-70b", "method": "dpo", "stack": "typical"},
            {"gpus": "1024"},
        ),  # of 8 ranks a search sees no batch of 64
    ],
)
def test_the_batch_and_the_gpus_of_a_plan_asked_for_give_that_plan_again(asked, target):
    sought, plan = planned(**asked, **target)
    gpus, batch = str(plan.plan.gpus), str(plan.plan.layout.global_batch)
    given = planned(**asked, gpus=gpus)
    fixed = planned(**asked, gpus=gpus, global_batch=batch)

    assert pace_s(*given) == pytest.approx(pace_s(sought, plan), rel=0.03)
    assert pace_s(*fixed) == pytest.approx(pace_s(*given), rel=0.03)


def test_a_published_batch_is_left_where_another_is_much_faster():
    asked = {"model": "llama-3.1-405b", "gpus": "12288", "tokens": "15.6T"}
    published = planned(**asked, global_batch="2048")
    chosen = planned(**asked)

    assert chosen[1].plan.layout.global_batch != 2048
    assert pace_s(*chosen) < 0.9 * pace_s(*published)
    assert planned(**asked | {"gpus": "8192"})[1].plan.layout.global_batch == 2048


def test_a_published_batch_is_not_kept_by_a_pipeline_with_stages_to_spare():
    asked = {"model": "llama-3.1-405b", "precision": "fp8", "tokens": "1T", "gpus": "768"}
    published = planned(**asked, global_batch="2048")
    chosen = planned(**asked)

    assert published[1].plan.layout.pp == 48  # 126 layers, three on a stage: 42 stages would do
    assert chosen[1].plan.layout.pp == 1
    assert chosen[1].plan.layout.global_batch == 2016  # 96 ranks, 1.6 % fewer sequences
    assert pace_s(*chosen) < 0.96 * pace_s(*published)


def test_virtual_stages_that_do_not_split_the_layers_are_a_usage_error():
    with pytest.raises(UsageError) as caught:
        planned(params="7B", gpus="64", tp="4", pp="4", vp="3")
    assert parts(caught.value.message)["key"] == "error.vp_layers"


def test_a_budget_that_the_gpus_given_exceed_and_fewer_keep_is_told_how_many():
    asked = {"params": "70B", "precision": "fp8"}
    _, dear = planned(**asked, gpus="2048")
    budget = str(round(0.95 * at_confidence(dear.draws["cost_usd"], 0.8)))
    with pytest.raises(NoPlanError) as caught:
        planned(**asked, gpus="2048", budget=budget)
    hint = parts(caught.value.hint)

    assert hint["key"] == "hint.gpus_in_budget"
    assert planned(**asked, gpus=str(hint["gpus"]), budget=budget)[1].plan.probability.budget >= 0.8
    with pytest.raises(NoPlanError) as caught:
        planned(**asked, gpus="2048", budget="1000")
    assert parts(caught.value.hint)["key"] == "hint.larger_budget"


@pytest.mark.parametrize("cp", [{}, {"zero": "1"}])
def test_a_layout_that_does_not_divide_the_batch_is_wrong_usage_with_the_nearest_batches_that_do(cp):
    asked = {"params": "70B", "gpus": "512", "tp": "8", "pp": "4", **cp}
    with pytest.raises(UsageError) as caught:
        planned(**asked, global_batch="1000")

    assert (parts(caught.value.hint)["fewer"], parts(caught.value.hint)["more"]) == (992, 1008)
    assert planned(**asked, global_batch="1008")[1].plan.fits
    with pytest.raises(NoPlanError):  # nothing is fixed: other numbers of GPUs would do
        planned(params="70B", gpus="512", global_batch="1001")


def test_where_only_a_larger_batch_divides_one_is_named():
    with pytest.raises(UsageError) as caught:
        planned(params="7B", gpus="64", tp="1", pp="1", cp="1", micro_batch="16", global_batch="128")

    assert parts(caught.value.hint) == {"key": "hint.batch_fits", "more": 1024}


RISKY = {"params": "7B", "gpu": "l4", "tokens": "1B", "gpus": "8"}
"""Eight such GPUs hold the run, but a little more likely than allowed they do not."""


def refused(**asked: str) -> Message:
    with pytest.raises(NoPlanError) as caught:
        planned(**asked)
    return caught.value.hint


def test_of_two_options_only_the_risky_one_has_a_risk():
    hint = parts(refused(**RISKY, deadline="2d"))
    more, later = parts(hint["more"]), parts(hint["later"])

    assert (hint["key"], more["key"], later["key"]) == ("hint.more_gpus", "flag.gpus", "hint.option")
    assert parts(later["option"])["key"] == "flag.deadline_days"
    (risk,) = (parts(need)["risk"] for need in later["needs"])
    assert risk == planned(**RISKY)[1].plan.memory_risk > 0.05
    safe = parts(refused(**RISKY, deadline="2d", memory_risk="0.5"))
    assert (parts(safe["more"])["key"], parts(safe["later"])["key"]) == ("flag.gpus", "flag.deadline_days")


def test_of_ways_to_hold_deadline_and_budget_only_the_risky_one_has_a_risk():
    ways = parts(refused(**RISKY, deadline="2d", budget="1"))["ways"]

    assert [parts(way)["key"] for way in ways] == ["hint.within_deadline", "hint.option"]


def test_a_number_of_gpus_that_holds_a_run_at_a_risk_has_its_own_beside_other_ways():
    asked = make_question(params="70B", gpu="rtx-4090")
    case = make_case(asked, asked.policy, asked.clusters[0], price(), site())
    keys, ways = ("hint.fits_on", "hint.fits_on_at_risk"), (MORE_MEMORY,)

    assert parts(fits_on(case, keys, 16, 0.46, ways)) == {"key": keys[1], "gpus": 16, "risk": 0.46, "ways": ways}
    for risk in (None, case.memory_risk):
        assert parts(fits_on(case, keys, 16, risk, ways)) == {"key": keys[0], "gpus": 16, "ways": ways}


def test_a_fine_tuning_that_does_not_fit_is_offered_a_loss_with_its_own_risk_and_not_that_of_more_gpus():
    text = word(refused(
        model="llama-3.1-8b", params=None, method="lora", stack="hf", gpu="rtx-4090", gpus="1", packed="yes",
        lengths="600", seq_len="8192",
    ))  # fmt: skip

    assert "with --loss fused (at least" in text
    assert "probability" not in text.partition("--loss fused")[2].partition(")")[0]
    assert "46%" not in text
