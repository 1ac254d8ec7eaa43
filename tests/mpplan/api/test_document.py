"""The document for its readers: English texts with the messages that they are worded from beside them."""

from __future__ import annotations

import json

import pytest

from mpplan.api.document import to_document, worded, worded_errors
from planner.errors import Message, NoPlanError, UsageError
from tests.reports import sample

DOCUMENT = to_document(
    sample.answer(gaps=(sample.GAP,), warnings=(Message.of("price.warning.historic", rows="aws (2024-01-01)"),))
)


def test_a_worded_field_has_its_message_beside_it():
    lost = DOCUMENT["plans"][0]["lost_layouts"][0]

    assert lost["why"] == "6.0% slower"
    assert lost["why_message"] == {"key": "why.slower", "values": {"slower_ratio": 0.06}}


def test_an_assumption_names_the_flag_that_replaces_it():
    tokens = DOCUMENT["assumptions"][0]

    assert (tokens["text"], tokens["change_with"]) == ("The run trains on 1.4T tokens.", "--tokens")
    assert tokens["text_message"]["key"] == "assumption.tokens"


def test_a_gap_has_three_sentences_with_their_messages():
    (gap,) = DOCUMENT["gaps"]

    assert gap["key"] == "price.missing"
    assert gap["why"] == "the price book has no row for H100 SXM5 80 GB"
    assert [gap[f"{name}_message"]["key"] for name in ("what", "why", "effect")] == [
        "gap.price.missing.what", "gap.price.missing.why", "gap.price.missing.effect",
    ]  # fmt: skip


def test_a_list_of_texts_has_the_list_of_its_messages():
    assert DOCUMENT["warnings"] == [
        "no price from the last 18 months is known; older ones are used, those of aws (2024-01-01)"
    ]
    assert [message["key"] for message in DOCUMENT["warnings_message"]] == ["price.warning.historic"]


def test_it_is_plain_json():
    assert json.loads(json.dumps(DOCUMENT, allow_nan=False)) == DOCUMENT


def test_what_has_no_message_is_not_copied():
    plain = {"rows": [{"low": 1.0}, {"why": {"key": "why.too_big", "values": {"over_gib": 1.0}}}]}

    rows = worded(plain)["rows"]
    assert rows[0] is plain["rows"][0]
    assert rows[1]["why"] == "1.0 GiB too much"
    assert "why_message" not in plain["rows"][1]


def test_values_without_messages_pass_as_they_are():
    value = {"a": [1, None, {"key": "x"}], "values": {}}

    assert worded(value) == value


def test_errors_of_the_python_interface_are_english():
    with pytest.raises(NoPlanError, match=r"one server draws 12\.8 kW at the meter") as caught, worded_errors():
        raise NoPlanError(
            Message.of("error.cap_below_server", server_kw=12.75, cap_kw=10.0), hint=Message.of("hint.raise_cap")
        )
    assert caught.value.hint == "raise the cap"

    with pytest.raises(UsageError, match="plain text") as plain, worded_errors():
        raise UsageError("plain text")
    assert plain.value.hint is None
