"""The ledger of claims: every verdict is judged anew; the page, the shipped table, the document and the schema agree.

No verdict is written down in the code: `planner/claims/verdict.py` makes each from its evidence.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from mpplan.api.claim_ledger import claims, to_claims_document
from mpplan.ui.schema import file_of
from planner.claims.claim import load_claims
from planner.claims.decided.decision import saved, times, unsaved
from planner.claims.document import CLAIMS_SCHEMA
from planner.claims.ledger import DECIDERS, verdict_on
from planner.claims.shipped import FILE, load_verdicts, table_of
from reports.text.messages import word
from tools.claims import page

PAGE = Path(__file__).parents[2] / "docs" / "claims.md"
ONLY_FOR_EACH_MACHINE = ("trial",)
"""Bases whose last digit may differ with the linear algebra below NumPy."""


@pytest.fixture(scope="module")
def judged(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_DATA_HOME", str(tmp_path_factory.mktemp("data")))
        patch.setenv("XDG_CONFIG_HOME", str(tmp_path_factory.mktemp("config")))
        return claims()


@pytest.mark.parametrize("name", load_claims())
def test_the_shipped_verdict_is_the_one_that_its_evidence_gives(judged, name):
    entry = next(entry for entry in judged if entry.claim.id == name)
    shipped = load_verdicts()[name]

    assert (shipped.verdict, shipped.decided_by) == (entry.verdict, ", ".join(entry.decided_by)), "run `make claims`"
    if entry.decided_by[0] not in ONLY_FOR_EACH_MACHINE:
        assert word(shipped.words) == word(entry.brief), "run `make claims`"


def test_the_page_is_made_from_the_same_verdicts(judged):
    written = PAGE.read_text(encoding="utf-8").splitlines()
    made = page(judged).splitlines()

    assert len(written) == len(made), "run `make claims`"
    heads = [line for line in made if line.startswith(("| [c", "**"))]
    assert [line for line in heads if line not in written and "trial" not in line and "scale" not in line] == []


def test_the_shipped_table_reads_back_as_it_was_written(judged):
    assert table_of(judged).splitlines()[0] == FILE.read_text(encoding="utf-8").splitlines()[0]
    assert list(load_verdicts()) == list(load_claims()) == [entry.claim.id for entry in judged]


def test_every_claim_names_its_evidence_also_where_it_cannot_be_judged(judged):
    for entry in judged:
        assert entry.evidence
        assert all(case.source and (case.mid is not None or case.looked is not None) for case in entry.evidence)
        assert entry.decided_by


def test_the_document_agrees_with_its_schema(judged):
    document = json.loads(json.dumps(to_claims_document(judged), allow_nan=False))
    schema = json.loads(file_of(CLAIMS_SCHEMA).read_text(encoding="utf-8"))

    assert [fault.message for fault in Draft202012Validator(schema).iter_errors(document)] == []
    assert document["schema"] == "mpplan.claims/1"
    assert len(document["claims"]) == 33


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_every_reason_and_note_is_worded_in_both_languages(judged, lang):
    for entry in judged:
        assert word(entry.words, lang)
        assert all(word(note, lang) for note in entry.notes)


def test_evidence_that_points_the_other_way_turns_a_verdict(judged):
    """A verdict is not a constant: judged by the cases that disagree alone, what held under conditions does not."""
    from planner.claims.verdict import agrees, judge

    for entry in judged:
        counted = [case for case in entry.evidence if case.mid is not None and not case.beside]
        against = [case for case in counted if not agrees(entry.claim, case)]
        if against:
            assert judge(entry.claim, against).verdict == "does_not_hold"


def test_ratios_become_shares():
    assert (saved(2.0), unsaved(0.75), times(3.0)) == (0.5, 0.25, 3.0)


def test_a_claim_alone_is_judged_as_among_all(judged):
    from mpplan.api.claim_ledger import known_here

    alone = verdict_on(load_claims()["c20"], known_here())
    assert alone == next(entry for entry in judged if entry.claim.id == "c20")
    assert set(DECIDERS) == set(load_claims())
