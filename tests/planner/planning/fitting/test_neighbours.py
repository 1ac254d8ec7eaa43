"""The next numbers of GPUs named for one without a plan: each has one, and none is nearer."""

from __future__ import annotations

import pytest

from planner.parallelism.search import FixedLayout
from planner.planning.choice import best_on
from planner.planning.fitting.neighbours import FAR_MORE, Held, next_above, next_below
from planner.planning.risk import WORTH_TRYING, risk_of
from planner.planning.targets import MAX_GPUS
from tests.planner.build import case_of
from tests.planner.planning.test_choice import FREE


def planned_on(case, gpus: int) -> bool:
    choice = best_on(case, FREE, gpus)
    return choice.best is not None and choice.safe


@pytest.mark.parametrize(
    ("asked", "gpus", "fewer", "more"),
    [
        ({"params": "70B"}, 777, 776, 784),
        ({"params": "13B", "global_batch": "512"}, 250, 192, 256),
        ({"model": "opt-175b", "global_batch": "1024"}, 992, 896, 1024),
    ],
)
def test_the_next_whole_nodes_on_which_a_batch_splits_are_named(asked, gpus, fewer, more):
    case = case_of(**asked)

    assert not planned_on(case, gpus)
    assert (next_below(case, FREE, gpus), next_above(case, FREE, gpus, MAX_GPUS)) == (fewer, Held(gpus=more))
    assert planned_on(case, fewer)
    assert planned_on(case, more)
    assert not any(planned_on(case, count) for count in range(fewer + 8, more, 8))


def test_below_a_node_every_number_counts():
    case = case_of(params="7B")
    above = next_above(case, FREE, 1, MAX_GPUS)

    assert above is not None
    assert above.risk is None
    more = above.gpus
    assert not any(planned_on(case, count) for count in range(1, more))
    assert planned_on(case, more)
    assert more < 8
    assert next_below(case, FREE, 8) == 7


def test_no_number_is_named_where_none_has_a_plan():
    case = case_of(params="70B", global_batch="8")

    assert next_below(case, FREE, 8) is None
    assert next_above(case, FREE, 1, 8) is None
    assert next_above(case, FixedLayout(tp=1, pp=1, cp=1), 8, MAX_GPUS) is None  # eight ranks at most share a step


def test_far_numbers_are_found_by_the_steps_of_a_search():
    case = case_of(params="7B")
    fewer = next_below(case, FREE, 777_777)

    assert fewer is not None
    assert 10_000 < fewer < 777_777 - 64 * 8


def test_cards_are_looked_for_in_the_machines_that_their_number_asks_for():
    case = case_of(model="llama-3.1-70b", method="lora", stack="typical", gpu="rtx-4090", gpus="1")
    above = next_above(case, FREE, 1, MAX_GPUS)

    assert case.cluster.gpus_per_node == 1
    assert above == Held(gpus=8)
    assert planned_on(case.on(8), 8)
    assert not planned_on(case, 8)  # eight machines of one card
    assert not any(planned_on(case.on(gpus), gpus) for gpus in range(2, 8))


def test_far_fewer_gpus_that_hold_it_at_a_small_risk_are_named_with_it():
    case = case_of(model="llama-3.1-8b", method="lora", stack="typical", gpu="rtx-3070-8gb", gpus="1")
    above = next_above(case, FREE, 1, MAX_GPUS)

    assert above is not None
    assert above.risk is not None
    assert case.memory_risk < above.risk <= WORTH_TRYING
    assert above.risk == risk_of(case.on(above.gpus), best_on(case.on(above.gpus), FREE, above.gpus).winner)
    assert not any(planned_on(case.on(gpus), gpus) for gpus in range(2, FAR_MORE * above.gpus + 1))
