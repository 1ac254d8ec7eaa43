"""Numbers of GPUs between the round ones, and those that a search by round numbers hardly passes over."""

from __future__ import annotations

import math

import numpy as np
import pytest

from planner.planning.case import Case
from planner.planning.choice import Choice, best_given
from planner.planning.counting.counts import fewest
from planner.planning.counting.open_count import counted
from planner.planning.targets import targets_of
from tests.planner.planning.test_views import DRAWS, question_and_case

NEAR = 0.99
LITTLE_DEARER = 0.98
"""From this ratio of GPU-hours to the plan's, fewer nodes are no cheaper: a given number is searched more closely."""


def middle_gpu_s(case: Case, choice: Choice) -> float:
    return choice.gpus * float(np.median(case.evaluate(choice.winner, DRAWS).wall_s))


@pytest.mark.parametrize(
    "asked",
    [
        {"params": "70B", "precision": "fp8", "deadline": "3d"},
        {"params": "70B", "deadline": "5d"},
        {"params": "8B", "deadline": "1d"},
    ],
)
def test_no_fewer_gpus_that_are_split_as_the_plan_meet_its_deadline(asked):
    question, case = question_and_case(**asked)
    targets = targets_of(question)
    chosen = fewest(case, question.fixed, DRAWS, targets)
    layout = chosen.winner.at(0)
    step = math.lcm(layout.tp * layout.cp * layout.pp, case.cluster.gpus_per_node)

    nearest = math.floor(NEAR * chosen.gpus / step) * step  # numbers closer by than that are not told apart
    for gpus in range(nearest, int(0.9 * chosen.gpus), -step):
        fewer = best_given(case, question.fixed, gpus)
        meets = fewer.best is not None and fewer.safe and targets.met_by(case.evaluate(fewer.winner, DRAWS))
        assert not meets or middle_gpu_s(case, fewer) > middle_gpu_s(case, chosen)


@pytest.mark.parametrize("examples", ["300k", "500k", "800k"])
def test_to_fine_tune_by_a_deadline_no_fewer_nodes_would_do_that_are_no_dearer(examples):
    question, case = question_and_case(
        model="llama-3.1-8b", params=None, method="lora", deadline="1h", examples=examples, stack="typical"
    )
    targets = targets_of(question)
    chosen = counted(question, case, targets, DRAWS)
    assert chosen is not None

    for gpus in range(8, chosen.choice.gpus, 8):
        fewer = best_given(case, question.fixed, gpus)
        meets = fewer.safe and targets.met_by(case.evaluate(fewer.winner, DRAWS))
        assert not meets or middle_gpu_s(case, fewer) > LITTLE_DEARER * middle_gpu_s(case, chosen.choice)
