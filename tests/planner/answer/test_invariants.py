"""What holds of every answer: a possible one breaks no rule, and each rule sees what breaks it."""

from __future__ import annotations

import copy
import json

import pytest

from planner.answer.invariants import require_ordered, require_possible, violations
from planner.errors import InternalError
from tests.reports import sample

ANSWER = json.loads(json.dumps(sample.document()))


def places(document):
    return [violation.place for violation in violations(document)]


def with_plan(**changes):
    document = copy.deepcopy(ANSWER)
    document["plans"][0] |= changes
    return document


def ranged(low, mid, high):
    return {"low": low, "mid": mid, "high": high, "at_least": False}


def test_a_possible_answer_breaks_no_rule():
    assert places(ANSWER) == []


PLAN = ANSWER["plans"][0]


@pytest.mark.parametrize(
    ("changes", "place"),
    [
        ({"energy_mwh": ranged(3.0, 2.0, 4.0)}, "plans[0].energy_mwh"),
        ({"mfu": ranged(0.5, 0.9, 1.01)}, "plans[0].mfu"),
        ({"hfu": 1.3}, "plans[0].hfu"),
        ({"goodput_ratio": ranged(0.9, 1.0, 1.1)}, "plans[0].goodput_ratio"),
        ({"memory_risk": 1.5}, "plans[0].memory_risk"),
        ({"step_s": PLAN["step_s"] | {"matmul": 99.0}}, "plans[0].step_s"),
        ({"memory_gib": PLAN["memory_gib"] | {"weights": 99.0}}, "plans[0].memory_gib"),
        ({"energy_items_mwh": {"gpu": 1.0}}, "plans[0].energy_items_mwh"),
        ({"gpu_hours": ranged(1.0, 2.0, 3.0)}, "plans[0].gpu_hours"),
        ({"gpus": 8}, "plans[0].gpu_hours"),
        ({"layout": PLAN["layout"] | {"dp": 1}}, "plans[0].layout"),
        ({"cost_usd": ranged(1.0, 2.0, 3.0)}, "plans[0].cost_usd"),
        ({"cost_lines": [PLAN["cost_lines"][0] | {"quantity": 1.0}]}, "plans[0].cost_lines[0]"),
        ({"products": [{"evidence": "kernels:none"}]}, "plans[0].products[0].evidence"),
        ({"step_s": None}, "plans[0].step_s"),
    ],
)
def test_each_rule_names_the_place_that_breaks_it(changes, place):
    assert place in places(with_plan(**changes))


def test_a_peak_above_the_cap_does_not_leave():
    cap = {"gpu": PLAN["gpu"], "cap_mw": PLAN["peak_power_mw"] * 0.99, "gpus_allowed": 8, "binding": False}

    with pytest.raises(InternalError, match=r"plans\[0\]\.peak_power_mw .*above the cap"):
        require_possible(ANSWER | {"power_caps": [cap]})


def test_a_mean_above_its_peak_does_not_leave_but_may_be_read_since_earlier_versions_wrote_it():
    document = with_plan(mean_power_mw=ranged(0.1, 0.2, 99.0))

    assert places(document) == []
    with pytest.raises(InternalError, match=r"plans\[0\]\.mean_power_mw .*above the peak"):
        require_possible(document)


@pytest.mark.parametrize(
    ("change", "place"),
    [({"high": 1.4}, "savings[0].high"), ({"to": "fp2"}, "savings[0].to"), ({"low": 0.9, "mid": 0.5}, "savings[0]")],
)
def test_an_impossible_saving_is_seen(change, place):
    first, *others = ANSWER["savings"]

    assert place in places(ANSWER | {"savings": [first | {"high": 1.0} | change, *others]})


def test_a_warning_without_its_message_is_seen():
    assert places(ANSWER | {"warnings": ["one"], "warnings_message": []}) == ["warnings_message"]


def test_an_impossible_answer_does_not_leave_and_what_to_report_is_said():
    with pytest.raises(InternalError) as caught:
        require_possible(with_plan(hfu=1.3))

    assert caught.value.exit_code == 1
    assert dict(caught.value.message.values) == {"place": "plans[0].hfu", "rule": "1.3 is more than all"}
    assert str(caught.value.hint) == "hint.report_impossible"


def test_no_document_leaves_with_a_range_out_of_order_wherever_it_stands():
    require_ordered({"gpus": [{"rows": [{"tokens_per_s": ranged(1.0, 2.0, 3.0), "memory_gib": None}]}]})

    with pytest.raises(InternalError) as caught:
        require_ordered({"gpus": [{"rows": [{"tokens_per_s": ranged(3.0, 2.0, 1.0)}]}]})

    assert dict(caught.value.message.values)["place"] == "gpus[0].rows[0].tokens_per_s"


@pytest.mark.parametrize("mid", ["loss", "loss_mid"])
def test_ends_that_stand_beside_their_middle_are_a_range_too(mid):
    require_ordered({"parity": [{"loss_low": -1.0, mid: 0.5, "loss_high": 0.5}, {"loss_low": 2.0, "loss_high": 1.0}]})
    require_ordered({"parity": [{"loss_low": None, mid: 0.5, "loss_high": None}]})

    with pytest.raises(InternalError) as caught:
        require_ordered({"parity": [{"loss_low": 1.0, mid: 0.5, "loss_high": 2.0}]})

    assert dict(caught.value.message.values)["place"] == "parity[0].loss"
