"""The document: the keys that others build on, and what a broken one gets."""

from __future__ import annotations

import json

import pytest

from planner.answer.document import ESTIMATE_SCHEMA, Document, parse_document, read_document, to_document
from planner.answer.plan import MEMORY_ITEMS, METRICS, STEP_ITEMS
from planner.errors import InputFileError, Message, UsageError
from planner.planning.estimate import estimate
from tests.planner.build import make_question, rates_and_prices

ASKED = make_question(params="8B", gpus="8", gpu="a100-sxm4-80gb")


@pytest.fixture(scope="module")
def document() -> Document:
    return to_document(estimate(ASKED, rates_and_prices(ASKED), version="0.1", command=("estimate",)))


def test_it_is_plain_json_and_reads_back_as_it_was(document):
    assert parse_document(json.dumps(document, allow_nan=False), "plan.json") == json.loads(json.dumps(document))


def test_it_has_the_keys_of_the_design(document):
    # docs/report-schema.md
    assert document["schema"] == ESTIMATE_SCHEMA == "mpplan.estimate/2"
    for name in ("question", "plans", "same_deadline", "savings", "assumptions", "gaps", "evidence", "unsupported"):
        assert name in document
    plan = next(plan for plan in document["plans"] if plan["precision"] == "bf16")
    for name in ("policy", "gpu", "gpus", "layout", "fits", "why_not", "memory_gib", "step_s", *METRICS):
        assert name in plan
    assert set(plan["layout"]) >= {
        "tp", "pp", "vp", "cp", "ep", "dp", "zero", "micro_batch", "grad_accum", "act_ckpt",
    }  # fmt: skip
    assert set(plan["memory_gib"]) == {*MEMORY_ITEMS, "total"}
    total = plan["memory_gib"]["total"]
    assert total["low"] < total["mid"] < total["high"]
    assert total["mid"] == pytest.approx(sum(plan["memory_gib"][name] for name in MEMORY_ITEMS))
    assert plan["probability"] == {"deadline": None, "budget": None}
    assert [point["gpus"] for point in document["curve"] if point["chosen"]] == [8]
    assert set(plan["step_s"]) == {*STEP_ITEMS, "total"}
    for name in METRICS:
        assert set(plan[name]) == {"low", "mid", "high", "at_least"}
    assert set(document["savings"][0]) >= {"view", "metric", "from", "to", "low", "mid", "high"}
    assert set(document["unsupported"][0]) >= {"precision", "reason"}
    assert set(document["evidence"][0]) >= {"id", "kind", "gpu", "what", "source", "date", "used_in"}
    assert set(document["question"]["tokens"]) >= {"value", "source"}


def test_a_plan_that_does_not_fit_has_null_figures():
    adapters = make_question(params="8B", method="lora", gpus="1", gpu="rtx-4090")
    answer = to_document(estimate(adapters, rates_and_prices(adapters), version="0.1"))
    lacking = [plan for plan in answer["plans"] if not plan["fits"]]

    assert {plan["precision"] for plan in lacking} == {"fp32", "tf32"}  # frozen weights of 32 GB
    assert all(plan[name] is None for plan in lacking for name in (*METRICS, "memory_gib", "step_s", "layout"))
    assert all(plan["why_not"] for plan in lacking)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"schema": "mpplan.est', "plan.json:1: not JSON"),
        ("[1]", "plan.json: schema: expected `mpplan.estimate/2`, found `None`"),
        ('{"schema": "mpplan.estimate/1"}', "found `mpplan.estimate/1`"),
        ("{}", "found `None`"),
    ],
)
def test_what_is_no_such_document_is_an_invalid_file(text, message):
    with pytest.raises(InputFileError) as caught:
        parse_document(text, "plan.json")

    assert message in caught.value.message
    assert caught.value.exit_code == 3
    hints = ("hint.write_document_again", "hint.pass_document", "hint.document_again")
    assert caught.value.hint in {Message.of(key) for key in hints}
    assert (caught.value.hint == Message.of("hint.document_again")) == ("mpplan.estimate/1" in text)


def test_a_file_is_read_or_its_absence_told(document, tmp_path):
    path = tmp_path / "plan.json"
    path.write_text(json.dumps(document), encoding="utf-8")

    assert read_document(path)["plans"][0]["precision"] == "fp32"
    with pytest.raises(UsageError, match="cannot read") as caught:
        read_document(tmp_path / "none.json")
    assert caught.value.exit_code == 2
