from __future__ import annotations

import json
import re

import pytest

import reports
from planner.errors import Message, UsageError
from planner.evidence import Assumption, Evidence, EvidenceKind
from planner.question.asked import InputValue
from reports.document.redact import redacted
from tests.reports import sample

FORMATS = ("html", "markdown", "terminal", "csv", "json")


SECRET = Message.of("quote.basis", vendor="SecretCloud", commitment="on-demand")
WARNINGS = ("aurora-secret-v2 is large", "SecretCloud asks 2.518273")


def secretive() -> dict[str, object]:
    """A document with a name and prices in every place where they can hide."""
    question = sample.answer().question | {
        "model": InputValue(value="aurora-secret-v2", source="flag"),
        "price": InputValue(value=2.518273, source="flag", note=Message.of("note.price", basis=SECRET)),
        "provider": InputValue(value="SecretCloud", source="flag"),
    }
    price = Evidence(
        id="price:p1",
        kind=EvidenceKind.GIVEN,
        what="SecretCloud: 2.518273 USD per GPU-hour",
        source="offer of SecretCloud",
        used_in=("cost_usd",),
    )
    stays = Message.of("note.policy", what="The price of 2.518273 USD stays")
    said = Assumption(id="price", message=stays, input="price")
    document = sample.document(
        question=question,
        evidence=(*sample.EVIDENCE, price),
        assumptions=(*sample.answer().assumptions, said),
        command=("mpplan", "estimate", "--model", "aurora-secret-v2", "--price", "2.518273"),
        warnings=tuple(Message.of("warning.unused_line", problem=text) for text in WARNINGS),
    )
    document["model"]["name"] = "aurora-secret-v2"  # type: ignore[index]
    document["money"] = {"prices": [{"provider": "SecretCloud", "usd_per_gpu_h": 2.518273}]}
    document["yet_to_come"] = "SecretCloud asks 2.518273 for aurora-secret-v2"
    return document


@pytest.mark.parametrize("fmt", FORMATS)
@pytest.mark.parametrize("lang", reports.LANGUAGES)
def test_without_names_no_form_says_a_name(fmt, lang):
    text = reports.render(secretive(), fmt, redact=["names"], lang=lang)

    assert isinstance(text, str)
    assert "aurora" not in text.lower()
    assert "secretcloud" not in text.lower()


@pytest.mark.parametrize("fmt", FORMATS)
@pytest.mark.parametrize("lang", reports.LANGUAGES)
def test_without_prices_no_form_says_a_price(fmt, lang):
    text = reports.render(secretive(), fmt, redact=["prices"], lang=lang)

    assert isinstance(text, str)
    assert "2.518273" not in text
    shown = re.sub(r"<script.*?</script>", "", text, flags=re.DOTALL)  # the ladders of the sliders name the currency
    assert "$" not in shown
    assert "万美元" not in shown


def test_without_prices_the_document_in_the_page_has_none_either():
    document = redacted(secretive(), ["prices"])

    assert all(plan["cost_usd"] is None and plan["cost_lines"] == [] for plan in document["plans"])
    assert "cost_usd" not in {one["metric"] for one in document["savings"]}
    assert "price" not in document["question"]
    assert "2.518273" not in json.dumps(document)


def test_without_prices_the_answer_is_told_in_time():
    text = reports.render(secretive(), "terminal", redact=["prices"])

    assert isinstance(text, str)
    assert "in about 28.0 days" in text
    assert "no price was found" in text


def test_the_copy_says_what_was_left_out():
    page = reports.render(secretive(), "markdown", redact=["names", "prices"])

    assert isinstance(page, str)
    assert "Left out of this copy: names and prices" in page


def test_the_given_document_is_left_as_it_was():
    document = secretive()
    before = json.dumps(document)
    reports.render(document, "json", redact=["names", "prices"])

    assert json.dumps(document) == before


def test_an_unknown_part_is_a_usage_error():
    with pytest.raises(UsageError, match="unknown `dates`"):
        redacted(secretive(), ["dates"])


def test_without_prices_neither_the_curve_nor_the_probabilities_tell_a_cost_or_a_budget():
    document = redacted(sample.targets_document(), ["prices"])

    assert {point["cost_usd"] for point in document["curve"]} == {None}
    assert {point["in_budget"] for point in document["curve"]} == {None}
    assert [plan["probability"] for plan in document["plans"]] == [{"deadline": 0.83, "budget": None}] * 5
    assert document["curve"][0]["in_time"] is False
