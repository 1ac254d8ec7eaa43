from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest

import mpplan
import reports
from planner.errors import Message, UsageError
from planner.evidence import Assumption, Evidence, EvidenceKind
from planner.question.asked import InputValue
from planner.question.inputs import INPUTS as INPUTS_OF_THE_QUESTION
from reports.document.redact import redacted
from reports.document.unpriced import FIELDS, INPUTS, MESSAGES, PRICED_INPUTS
from reports.text.messages import templates
from tests.reports import sample

SCHEMAS = Path(mpplan.__file__).parent / "schemas"
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
    assumption = Assumption(id="price", message=stays, input="price")
    document = sample.document(
        question=question,
        evidence=(*sample.EVIDENCE, price),
        assumptions=(*sample.answer().assumptions, assumption),
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
    assert "cost_usd" not in {saving["metric"] for saving in document["savings"]}
    assert "price" not in document["question"]
    assert "2.518273" not in json.dumps(document)


def test_without_prices_the_answer_is_told_in_time():
    text = reports.render(secretive(), "terminal", redact=["prices"])

    assert isinstance(text, str)
    assert "in about 28.0 days" in text
    assert "no price was found" not in text
    assert "left out of this copy: prices" in " ".join(text.split())


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


def test_the_price_of_each_of_several_gpus_is_an_input_of_its_own_and_goes_too():
    document = secretive()
    document["question"] |= {"price h100-sxm5-80gb": {"value": 2.518273, "source": "flag", "note": None}}

    copy = redacted(document, ["prices"])

    assert [name for name in copy["question"] if "price" in name] == []
    assert "2.518273" not in json.dumps(copy)


def test_without_prices_a_plan_says_no_cost_in_why_it_is_not_one():
    document = secretive()
    over = {"key": "error.over_budget", "values": {"usd": 2.518273}}
    slow = {"key": "why.slower", "values": {"slower_ratio": 0.06}}
    document["plans"][0] |= {"why_not": "at that it costs $2.518273", "why_not_message": over}  # type: ignore[index]
    document["plans"][1] |= {"why_not": "6.0% slower", "why_not_message": slow}  # type: ignore[index]

    plans = redacted(document, ["prices"])["plans"]

    assert [plan["why_not"] for plan in plans[:2]] == ["…", "6.0% slower"]
    assert "why_not_message" not in plans[0]
    assert plans[1]["why_not_message"] == slow


def test_what_nobody_listed_is_left_out_with_the_prices():
    document = secretive()
    document["plans"][0]["rent"] = {"mid": 2.518273}  # type: ignore[index]
    document["savings"][0]["metric"] = "rent"  # type: ignore[index]
    document["gaps"] = [{"key": "x", "what": "2.518273", "why": "", "effect": ""}]
    document["warnings"], document["warnings_message"] = ["x"], [{"key": "warning.to_come", "values": {"x": 2.518273}}]

    copy = redacted(document, ["prices"])

    assert "rent" not in copy["plans"][0]
    assert "rent" not in {saving["metric"] for saving in copy["savings"]}
    assert (copy["gaps"], copy["warnings"]) == ([], [])
    assert "2.518273" not in json.dumps(copy)


def test_every_input_of_the_question_is_decided_to_be_a_price_or_none():
    assert {item.name for item in INPUTS_OF_THE_QUESTION} == INPUTS | PRICED_INPUTS
    assert set() == INPUTS & PRICED_INPUTS


MONEY = re.compile(r"\$|usd|prices?\b|costs?\b|providers?\b|budgets?\b|vendor|offer|\bbill", re.IGNORECASE)


def test_no_sentence_that_stays_without_prices_speaks_of_money():
    templates_by_key = templates("en")

    assert MESSAGES - templates_by_key.keys() == set()
    assert [key for key in sorted(MESSAGES) if MONEY.search(templates_by_key[key])] == []


def test_no_field_that_stays_without_prices_is_money_by_its_name():
    schema = json.loads((SCHEMAS / "estimate-2.json").read_text(encoding="utf-8"))

    def names(node: Any, path: str, inside: tuple[str, ...]) -> Iterator[str]:
        reference = node.get("$ref", "").rpartition("/")[2]
        if reference and reference not in inside:
            yield from names(schema["$defs"][reference], path, (*inside, reference))
        for choice in (*node.get("anyOf", ()), *node.get("oneOf", ()), *filter(None, [node.get("items")])):
            yield from names(choice, path, inside)
        for name, value in node.get("properties", {}).items():
            yield (at := f"{path}.{name}".removeprefix("."))
            yield from names(value, at, inside)

    fields = {at.replace("same_deadline", "plans", 1) for at in names(schema, "", ())}
    steps = {at: at.split(".") for at in fields}
    kept = {at for at, parts in steps.items() if any(".".join(parts[:n]) in FIELDS for n in range(1, len(parts) + 1))}

    assert FIELDS - fields == set()
    assert [at for at in sorted(kept) if MONEY.search(at)] == []


@pytest.mark.parametrize("more", [{}, {"redacted": ["names"]}])
def test_a_copy_without_prices_is_an_answer_by_its_schema(more):
    schema = json.loads((SCHEMAS / "estimate-2.json").read_text(encoding="utf-8"))

    jsonschema.validate(json.loads(json.dumps(redacted(secretive() | more, ["prices"]))), schema)


def test_without_prices_neither_the_curve_nor_the_probabilities_tell_a_cost_or_a_budget():
    document = redacted(sample.targets_document(), ["prices"])

    assert {point["cost_usd"] for point in document["curve"]} == {None}
    assert {point["in_budget"] for point in document["curve"]} == {None}
    assert [plan["probability"] for plan in document["plans"]] == [{"deadline": 0.83, "budget": None}] * 5
    assert document["curve"][0]["in_time"] is False
