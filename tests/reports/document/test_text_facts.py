from __future__ import annotations

import pytest

from reports.document import text_facts
from tests.reports import sample


@pytest.mark.parametrize(("typed", "allowed"), [("5%", 0.05), ("0.3", 0.3), ("often", None), (None, None)])
def test_the_allowed_risk_is_read_as_it_was_typed(typed, allowed):
    assert text_facts.allowed_memory_risk({"question": {"memory_risk": {"value": typed}}}) == allowed


def test_a_document_without_the_input_says_nothing_of_the_allowed_risk():
    assert text_facts.allowed_memory_risk({"question": {}}) is None


def test_only_a_message_has_a_key():
    assert text_facts.message_key({"key": "gap.power", "values": {}}) == "gap.power"
    assert [text_facts.message_key(value) for value in (None, "gap.power", {"key": "gap.power"})] == ["", "", ""]


def test_a_stand_in_and_a_short_name_are_read_from_the_messages_of_the_assumptions():
    like = {"text_message": {"key": "assumption.price_like", "values": {"gpu": "gb300", "like": "h100", "hour": ""}}}
    short = {"text_message": {"key": "assumption.usual_name", "values": {}}}
    document = {"assumptions": [like, {"text": "without a message"}, short]}

    assert text_facts.stand_ins(document) == [("gb300", "h100")]
    assert text_facts.short_name_assumptions(document) == [short]


def test_a_faster_layout_is_known_by_the_message_that_says_why_it_lost():
    plan = sample.document()["plans"][-1]
    assert text_facts.faster_but_less_simple(plan) is None
    row = {"why_message": {"key": "why.simpler", "values": {"faster_ratio": 0.0023}}}

    assert text_facts.faster_but_less_simple(plan | {"lost_layouts": [*plan["lost_layouts"], row]}) == (row, 0.0023)


def test_a_faster_layout_with_another_batch_is_not_called_less_simple():
    plan = sample.document()["plans"][-1]
    row = {"why_message": {"key": "why.other_batch", "values": {"faster_ratio": 0.1}}}
    lost = plan | {"lost_layouts": [*plan["lost_layouts"], row]}

    assert text_facts.faster_but_less_simple(lost) is None
    assert text_facts.faster_with_other_batch(lost) == (row, 0.1)


def test_ids_say_where_a_kernel_was_measured_and_what_is_of_skipped_steps():
    assert text_facts.scaled_from("kernels:matmul:l40s:bf16:rtx-4090") == "l40s"
    assert text_facts.is_of_skipped_steps("numerics:char-lm/loss-scaling/fp16")
    assert not text_facts.is_of_skipped_steps("parameter:restart_s")
