"""How likely a target is met, and the figure at a confidence."""

from __future__ import annotations

import numpy as np
import pytest

from planner.planning.targets import MAX_GPUS, at_confidence, digits_apart, probability, targets_of
from tests.planner.build import make_question


def test_a_limit_is_met_as_often_as_draws_lie_within_it():
    assert probability(np.array([1.0, 2.0, 3.0, 4.0]), 3.0) == 0.75
    assert probability(np.array([1.0, 2.0]), 0.5) == 0.0
    assert probability(np.array([3.0]), 3.0 * (1 - 1e-12)) == 1.0  # seconds that went through days and back


@pytest.mark.parametrize(("confidence", "figure"), [(0.1, 1.0), (0.5, 3.0), (0.8, 4.0), (0.81, 5.0), (1.0, 5.0)])
def test_the_figure_at_a_confidence_is_the_least_that_as_many_draws_do_not_exceed(confidence, figure):
    draws = np.array([5.0, 1.0, 4.0, 2.0, 3.0])

    assert at_confidence(draws, confidence) == figure
    assert probability(draws, at_confidence(draws, confidence)) >= confidence


def test_a_question_says_what_is_to_be_met_and_how_surely():
    plain, asked = (
        targets_of(make_question(params="8B", gpus="8")),
        targets_of(make_question(params="8B", deadline="2d")),
    )
    spent = targets_of(make_question(params="8B", budget="1M", confidence="90%"))

    assert (plain.deadline_s, plain.budget_usd, plain.most_gpus) == (None, None, MAX_GPUS)
    assert (asked.deadline_s, asked.confidence_ratio, asked.most_gpus) == (172_800, 0.8, MAX_GPUS)
    assert (spent.budget_usd, spent.confidence_ratio, spent.most_gpus) == (1e6, 0.9, 1024)


def test_probabilities_that_round_alike_take_the_digits_that_tell_them_apart():
    assert [digits_apart(ratio, 0.99) for ratio in (0.5, 0.9861, 0.98996, 0.99)] == [0, 1, 3, 3]
