"""The plan is not dominated: no number of GPUs and no batch close to its own is clearly sooner and cheaper."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from planner.parallelism.search import FixedLayout
from planner.planning.asked import asked_plan
from planner.planning.case import Case, make_case
from planner.planning.choice import best_on, expected_paces, tokens_ratio
from planner.planning.ranges import Ranged
from planner.question.batch import batch_band
from planner.rates.terms import Draws
from planner.training.recipe import Recipe
from tests.planner.build import price, question, site

CLOSE = 0.03
"""What simpler layouts and fewer GPUs may cost: 2 % each at the mean over draws, rarely both."""


def planned(**asked: str) -> tuple[Case, Ranged]:
    one = question(**asked)
    case = make_case(one, one.asked, one.clusters[0], price(), site())
    return case, asked_plan(one, case, Draws(count=101, seed=0))


def figures(case: Case, gpus: int, recipe: Recipe) -> tuple[float, float, bool]:
    """Expected seconds and GPU-seconds per sequence of what is planned on a number of GPUs, and whether it is safe.

    Weighed by the tokens that a loss takes with its batch, over those with the recipe's.
    """
    choice = best_on(case, FixedLayout(), gpus)
    if choice.best is None:
        return np.inf, np.inf, False
    pace_s = float((expected_paces(case, choice.winner) * tokens_ratio(choice.winner, recipe))[0])
    return pace_s, pace_s * gpus, choice.safe


@pytest.mark.parametrize(
    "asked",
    [
        {"params": "70B", "precision": "fp8", "deadline": "30d"},
        {"params": "8B", "deadline": "10d"},
        {"params": "13B", "deadline": "7d", "precision": "fp8"},
        {"params": "8B", "budget": "60k"},
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
