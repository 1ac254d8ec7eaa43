"""A budget near a cliff: costs are nearly flat over numbers of GPUs, so that a little more money may save much time."""

from __future__ import annotations

import pytest

from planner.planning.counting.more_money import LITTLE_MORE, MUCH_SOONER
from planner.planning.targets import at_confidence
from tests.planner.build import parts
from tests.planner.planning.test_requested import planned

ASKED = {"params": "70B", "precision": "fp8"}


def test_a_little_more_money_that_ends_a_run_much_sooner_is_named_with_its_amount_count_and_days():
    _, most = planned(**ASKED, gpus="1024")
    needed = at_confidence(most.draws["cost_usd"], 0.8)
    message_count = 0
    for share in (0.97, 0.98, 0.99):
        _, chosen = planned(**ASKED, budget=str(round(share * needed)))
        for message in map(parts, chosen.more):
            message_count += 1
            assert share * needed < message["budget_usd"] <= LITTLE_MORE * share * needed
            assert message["days"] <= MUCH_SOONER * chosen.plan.duration_days.mid
            _, larger = planned(**ASKED, budget=str(message["budget_usd"]))
            assert larger.plan.duration_days.mid <= message["days"] * 1.05
    assert message_count


@pytest.mark.parametrize("budget", ["10M", "100M"])
def test_a_budget_that_pays_for_the_soonest_end_is_told_of_no_more_money(budget):
    assert planned(**ASKED, budget=budget)[1].more == ()


def test_gpus_that_are_given_are_told_of_no_more_money():
    assert planned(**ASKED, gpus="512", budget="10M")[1].more == ()
