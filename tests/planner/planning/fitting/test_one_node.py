"""Whether one node holds a run: by its memory alone, whatever number of GPUs is asked for."""

from __future__ import annotations

import pytest

from planner.planning.choice import best_on
from planner.planning.fitting.one_node import held_by_a_node, with_its_losses
from tests.planner.build import make_question
from tests.planner.planning.test_views import question_and_case


@pytest.mark.parametrize("method", ["sft", "lora", "qlora"])
@pytest.mark.parametrize("model", ["llama-3.1-8b", "llama-3.1-70b", "llama-3.1-405b"])
def test_a_node_holds_a_run_where_a_safe_layout_of_it_is_found_on_one(model, method):
    question, case = question_and_case(model=model, params=None, method=method)
    choice = best_on(case, question.fixed, case.cluster.gpus_per_node)

    assert held_by_a_node(question, case.cluster) is (choice.best is not None and choice.safe)


@pytest.mark.parametrize("model", ["llama-3.1-8b", "llama-3.1-70b"])
def test_the_number_of_gpus_asked_for_says_nothing_of_it(model):
    questions = [make_question(model=model, params=None, method="sft", gpus=gpus) for gpus in ("8", "16", "64")]

    assert len({held_by_a_node(question, question.clusters[0]) for question in questions}) == 1


def test_a_loss_that_was_chosen_is_the_only_one_that_is_tried():
    free, given = (
        make_question(model="llama-3.1-8b", params=None, method="lora", **more) for more in ({}, {"loss": "full"})
    )

    assert [question.tuning.loss for question in with_its_losses(free)] == [None, "fused"]
    assert [question.tuning.loss for question in with_its_losses(given)] == ["full"]
