"""A copy without prices."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from planner.errors import Message
from planner.evidence import Evidence, EvidenceKind
from planner.question.asked import InputValue
from reports.document.prices import without_prices
from tests.reports import sample
from tests.reports.document.test_redact import secretive


def test_a_copy_without_prices_has_nothing_more_to_take_out() -> None:
    copy = without_prices(secretive())

    assert without_prices(copy) == copy
    assert all(plan["cost_usd"] is None for plan in copy["plans"])


def test_a_copy_without_prices_does_not_name_the_provider_whose_pue_was_used() -> None:
    told = "PUE 1.15, secretcloud us-east-1"
    source = Evidence(
        id="pue:u004", kind=EvidenceKind.PUBLISHED, what=told, source="figure of SecretCloud", used_in=("energy_mwh",)
    )
    note = Message.of("note.pue", what=told)
    question = sample.answer().question | {"pue": InputValue(value=1.15, source="catalogue", note=note)}
    copy = without_prices(sample.document(question=question, evidence=(*sample.EVIDENCE, source)))

    assert "secretcloud" not in json.dumps(copy).lower()
    assert [row["what"] for row in copy["evidence"] if row["id"].startswith("pue:")] == ["PUE 1.15"]
    assert copy["question"]["pue"]["value"] == 1.15
    assert without_prices(copy) == copy


@pytest.mark.parametrize(("name", "kept"), [("fp8", {"pue", "grid"}), ("LoRA", {"pue", "grid", "lengths", "examples"})])
def test_a_copy_without_prices_keeps_every_assumption_about_energy_and_data(
    ask: Callable[[str], dict[str, Any]], name: str, kept: set[str]
) -> None:
    document = ask(name)
    stated = {row["id"] for row in document["assumptions"]}

    assert kept & stated <= {row["id"] for row in without_prices(document)["assumptions"]}
    assert {"pue", "grid"} <= kept & stated
