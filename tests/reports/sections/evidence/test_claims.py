"""Claims of the literature in the report: those that touch the plan, with the shipped verdicts."""

from __future__ import annotations

import pytest

from planner.claims.shipped import load_verdicts
from reports.document.facts import Facts
from reports.page.build import checked
from reports.sections.evidence.claims import MOST, claims, touching
from reports.text.language import words_for
from tests.reports import sample


def facts(**changes):
    return Facts(checked(sample.document() | changes))


def test_claims_of_the_plans_precision_are_shown_but_not_all_of_them():
    shown = touching(facts())
    asked = facts().answer

    section = claims(facts(), words_for("en"))
    assert section is not None
    assert len(section.blocks[0].rows) == MOST < len(shown)
    assert section.lead[0].text.startswith(f"{len(shown)} of 33 claims")
    assert f"{MOST} of these {len(shown)} are shown" in "".join(span.text for span in section.lead)
    ours = {asked["precision"], asked["gpu"], asked["layout"]["act_ckpt"]}
    assert all(ours & {tag.split(":")[1] for tag in entry.claim.shown_with} for entry in shown)


def test_a_claim_of_the_plans_model_comes_first():
    document = sample.document()
    document["model"]["name"] = "deepseek-v3"

    assert touching(Facts(checked(document)))[0].claim.id == "c14"


def test_a_claim_of_the_asked_precision_is_among_those_shown_whatever_else_touches_the_plan():
    document = sample.document()
    layout = document["plans"][0]["layout"] | {"act_ckpt": "full", "zero": 3}
    for plan in document["plans"]:
        plan["layout"] = layout
    first = touching(Facts(checked(document)))[:MOST]

    assert document["question"]["precision"]["value"] == "fp8"
    assert "c11" in [entry.claim.id for entry in first]
    assert all("precision:fp8" in entry.claim.shown_with for entry in first)


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_a_row_has_the_claim_the_verdict_and_why(lang):
    section = claims(facts(), words_for(lang))
    assert section is not None
    first = touching(facts())[0]
    cells = section.blocks[0].rows[0].cells

    assert cells[0].text == load_verdicts()[first.claim.id].claim.text[lang]
    assert cells[1].tone == {"holds": "good", "does_not_hold": "bad"}.get(first.verdict, "")
    assert cells[2].text
