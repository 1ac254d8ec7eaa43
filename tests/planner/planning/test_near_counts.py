"""A number of GPUs that divides nothing: the nearest that do, and no word about memory."""

from __future__ import annotations

import pytest

from planner.errors import Message, NoPlanError
from planner.parallelism.search import FixedLayout
from planner.planning.case import Case, make_case
from planner.planning.estimate import estimate
from planner.planning.near_counts import near_counts
from tests.planner.build import parts, price, prices, question, site


def case(**asked: str) -> Case:
    resolved = question(**asked)
    machine = resolved.clusters[0]
    return make_case(resolved, resolved.asked, machine, price(machine.gpu.id), site())


def test_the_nearest_whole_nodes_on_both_sides_are_named():
    # 16 sequences over 16 layers on nodes of 8 divide evenly over 8 and 16 GPUs, and over none between
    hint = near_counts(case(params="1B", global_batch="16"), FixedLayout(), 11)

    assert hint == Message.of("hint.gpus_near", fewer=8, more=16)


def test_where_nothing_near_divides_the_batch_is_what_to_change():
    hint = near_counts(case(params="1B", global_batch="1"), FixedLayout(tp=1, pp=1, cp=1), 64)

    assert hint == Message.of("hint.more_divisors")


def test_gpus_that_divide_nothing_get_no_advice_about_memory():
    asked = question(params="7B", gpus="97", global_batch="8")
    with pytest.raises(NoPlanError) as caught:
        estimate(asked, prices(asked), site())

    assert parts(caught.value.message)["why"] == Message.of("why.no_even_split", global_batch=8)
    assert parts(caught.value.hint)["key"] in ("hint.gpus_near", "hint.gpus_only", "hint.more_divisors")
