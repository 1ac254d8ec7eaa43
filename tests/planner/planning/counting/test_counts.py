"""How many GPUs: the fewest that meet a deadline, the soonest end within a budget, and errors that say what would."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.errors import NoPlanError
from planner.parallelism.search import enumerate_layouts
from planner.planning.choice import Choice, best_on
from planner.planning.counting.counts import fewest, soonest
from planner.planning.targets import MAX_GPUS, Targets, at_confidence, probability
from tests.examples import examples
from tests.planner.build import case_of, parts
from tests.planner.planning.test_choice import DRAWS, FREE, small


def by(
    deadline_s: float | None = None,
    *,
    budget_usd: float | None = None,
    confidence: float = 0.8,
    most_gpus: int = MAX_GPUS,
) -> Targets:
    return Targets(deadline_s=deadline_s, budget_usd=budget_usd, confidence_ratio=confidence, most_gpus=most_gpus)


def gpu_s(choice: Choice) -> float:
    return choice.gpus * float(choice.scores.wall_s[choice.best])


@examples(25)
@given(
    hours=st.floats(0.5, 200), tokens=st.sampled_from((1e9, 2e10)), confidence=st.sampled_from((0.3, 0.5, 0.8, 0.95))
)
def test_the_plan_meets_the_deadline_at_the_confidence_and_no_fewer_nodes_would(hours, tokens, confidence):
    case = replace(small(), tokens=tokens)
    targets = by(hours * 3600, confidence=confidence)
    try:
        choice = fewest(case, FREE, DRAWS, targets)
    except NoPlanError:
        everything = enumerate_layouts(case.recipe, case.cluster, FREE, gpus_between=(1, 10_000))
        scores = case.score(everything)
        best = everything.take(np.array([np.argmin(scores.wall_s)]))
        assert probability(case.evaluate(best, DRAWS).wall_s, hours * 3600) < confidence
        return
    assert choice.gpus % case.cluster.gpus_per_node == 0
    assert probability(case.evaluate(choice.winner, DRAWS).wall_s, hours * 3600) >= confidence
    below = enumerate_layouts(case.recipe, case.cluster, FREE, gpus_between=(1, choice.gpus - 1))
    gpu_hours = choice.gpus * float(choice.scores.wall_s[choice.best])
    fits = case.score(below).memory_bytes <= case.cluster.gpu.memory_bytes
    for gpus in np.unique(below.gpus[fits]):
        fewer = best_on(case, FREE, int(gpus))
        in_time = probability(case.evaluate(fewer.winner, DRAWS).wall_s, hours * 3600) >= confidence
        # fewer that meet it are passed over only for up to a quarter or two nodes more that are sooner and cheaper
        if fewer.safe and in_time:
            assert choice.gpus <= max(1.25 * gpus, gpus + 16)
            assert gpu_hours < gpus * float(fewer.scores.wall_s[fewer.best])


def test_a_plan_s_own_duration_is_a_deadline_that_it_meets():
    for params in ("1B", "8B", "70B"):
        case = case_of(params=params)
        chosen = fewest(case, FREE, DRAWS)
        duration = at_confidence(case.evaluate(chosen.winner, DRAWS).wall_s, 0.8)
        choice = fewest(case, FREE, DRAWS, by(duration / 86400 * 86400))

        assert choice.gpus <= max(1.25 * chosen.gpus, chosen.gpus + 16)
        assert choice.gpus == chosen.gpus or gpu_s(choice) < gpu_s(chosen)


def test_a_budget_is_spent_on_the_soonest_end_that_it_pays_for_at_the_confidence():
    case = case_of(params="8B")
    targets = by(budget_usd=60_000, most_gpus=512)
    chosen = soonest(case, FREE, DRAWS, targets)
    chosen_s = float(chosen.scores.wall_s[chosen.best])

    assert probability(case.evaluate(chosen.winner, DRAWS).cost_usd, 60_000) >= 0.8
    for gpus in (8, 64, 128, 256, 384, 448, 512):
        other = best_on(case, FREE, gpus)
        sooner = float(other.scores.wall_s[other.best]) < chosen_s
        assert not (sooner and other.safe and probability(case.evaluate(other.winner, DRAWS).cost_usd, 60_000) >= 0.8)


def test_a_budget_is_spent_on_a_number_between_round_ones_where_that_ends_sooner():
    """Llama 3.1 8B took 416 H100 where 424 ended 2 % sooner for the same money."""
    case, budget_usd = case_of(model="llama-3.1-8b"), 31_500
    chosen = soonest(case, FREE, DRAWS, by(budget_usd=budget_usd, most_gpus=1024))
    above = [best_on(case, FREE, gpus) for gpus in range(chosen.gpus + 8, int(1.125 * chosen.gpus), 8)]

    assert above
    for other in above:
        sooner = float(other.scores.wall_s[other.best]) < float(chosen.scores.wall_s[chosen.best])
        paid = probability(case.evaluate(other.winner, DRAWS).cost_usd, budget_usd) >= 0.8
        assert not (sooner and other.safe and paid), other.gpus


def test_a_larger_budget_never_ends_later_and_a_smaller_most_never_takes_more_gpus():
    case = case_of(params="8B")

    def days(budget_usd: float, most_gpus: int = 1024) -> float:
        choice = soonest(case, FREE, DRAWS, by(budget_usd=budget_usd, most_gpus=most_gpus))
        assert choice.gpus <= most_gpus
        return float(choice.scores.wall_s[choice.best]) / 86400

    by_budget = [days(usd) for usd in (40_000, 50_000, 70_000, 100_000, 1e6)]
    by_most = [days(1e6, most) for most in (1024, 512, 100, 8)]
    assert by_budget == sorted(by_budget, reverse=True)
    assert by_most == sorted(by_most)


def test_a_higher_confidence_never_takes_fewer_gpus_for_a_deadline_nor_ends_sooner_for_a_budget():
    case = case_of(params="8B")
    confidences = (0.2, 0.5, 0.8, 0.95)
    counts = [fewest(case, FREE, DRAWS, by(10 * 86400, confidence=ratio)).gpus for ratio in confidences]
    ends = [soonest(case, FREE, DRAWS, by(budget_usd=70_000, most_gpus=512, confidence=ratio)) for ratio in confidences]

    assert counts == sorted(counts)
    assert counts[0] < counts[-1]
    walls = [float(choice.scores.wall_s[choice.best]) for choice in ends]
    assert walls == sorted(walls)


def test_a_budget_that_pays_for_no_number_of_gpus_says_what_the_cheapest_costs():
    case = case_of(params="8B")
    with pytest.raises(NoPlanError) as caught:
        soonest(case, FREE, DRAWS, by(budget_usd=1000, most_gpus=1024))

    dear = parts(caught.value.message)
    assert (dear["key"], dear["budget_usd"], dear["in_time"]) == ("error.too_dear", 1000, "")
    assert dear["cheapest_usd"] > 1000
    assert caught.value.exit_code == 8
    enough = parts(caught.value.hint)["budget_usd"]
    assert soonest(case, FREE, DRAWS, by(budget_usd=enough, most_gpus=1024)).best is not None


def test_counts_in_between_are_planned_with_a_batch_near_the_default():
    case = case_of(params="70B", precision="fp8")
    for gpus in (416, 448, 480, 100):
        choice = best_on(case, FREE, gpus)
        batch = int(choice.winner.global_batch[0])
        assert choice.safe
        assert choice.gpus == gpus
        assert 820 <= batch <= 1280  # four fifths and five quarters of 1,024


def test_a_longer_deadline_never_takes_more_gpus():
    case = case_of(params="8B")
    counts = [fewest(case, FREE, DRAWS, by(d * 86400)).gpus for d in (1, 3, 10, 30, 100)]

    assert counts == sorted(counts, reverse=True)


def test_a_longer_deadline_takes_no_more_gpus_for_a_model_whose_lean_layouts_are_slow():
    case = case_of(model="deepseek-v3", tokens="1e12", gpu="h200", precision="fp8")
    counts = [fewest(case, FREE, DRAWS, by(days * 86400)).gpus for days in (12, 14, 32, 35)]

    assert counts == sorted(counts, reverse=True)


@pytest.mark.parametrize(
    ("tokens", "precision", "days"), [("5e11", "bf16", (90, 150, 200)), ("2e12", "fp8", (150, 200))]
)
def test_a_longer_deadline_takes_no_more_gpus_for_layers_that_few_depths_divide(tokens, precision, days):
    case = case_of(model="deepseek-v3", tokens=tokens, gpu="h200", precision=precision)
    counts = [fewest(case, FREE, DRAWS, by(limit * 86400)).gpus for limit in days]

    assert counts == sorted(counts, reverse=True)


def test_more_gpus_never_take_markedly_longer():
    for case in (case_of(params="8B"), case_of(params="70B", precision="fp8")):
        choices = [best_on(case, FREE, gpus) for gpus in (64, 128, 192, 256, 384, 512, 768, 1024)]
        walls = [float(choice.scores.wall_s[choice.best]) for choice in choices]
        # numbers that divide badly may be a little slower than fewer that divide well
        assert all(more <= 1.05 * fewer for fewer, more in pairwise(walls))
        assert walls[-1] < walls[0] / 4
