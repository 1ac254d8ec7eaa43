"""The ledger of claims: every verdict is judged anew; the page, the shipped table, the document and the schema agree.

No verdict is written down in the code: `planner/claims/verdict.py` makes each from its evidence.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from mpplan.api.claims.ledger import claims, to_claims_document
from mpplan.ui.schema import file_of
from planner.claims.claim import load_claims
from planner.claims.decided.decision import saved, times, unsaved
from planner.claims.document import CLAIMS_SCHEMA
from planner.claims.ledger import DECIDERS, verdict_on
from planner.claims.shipped import FILE, load_verdicts, table_of
from planner.claims.standing import band, standing
from planner.claims.verdict import judge
from reports.text.claims import ends, stands_words
from reports.text.messages import word
from tools.claims import page

PAGE = Path(__file__).parents[2] / "docs" / "claims.md"
OWN = {"XDG_DATA_HOME": "data", "XDG_CONFIG_HOME": "config"}
"""Where a user's own records would be."""


@pytest.fixture(scope="module")
def judged(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        for variable, folder in OWN.items():
            patch.setenv(variable, str(tmp_path_factory.mktemp(folder)))
        return claims()


@pytest.mark.parametrize("name", load_claims())
def test_the_shipped_verdict_is_the_one_that_its_evidence_gives(judged, name):
    entry = next(entry for entry in judged if entry.claim.id == name)
    shipped = load_verdicts()[name]

    assert (shipped.verdict, shipped.decided_by) == (entry.verdict, ", ".join(entry.decided_by)), "run `make claims`"
    assert word(shipped.words) == word(entry.brief), "run `make claims`"


def test_the_page_is_made_from_the_same_verdicts(judged):
    """Compared whole: nothing on it is measured on the machine that writes it."""
    assert PAGE.read_text(encoding="utf-8").splitlines() == page(judged).splitlines(), "run `make claims`"


def test_every_row_of_the_page_stands_as_its_case_does(judged):
    """The page is read back: figures, ranges and how each case stands, row by row."""
    sections = PAGE.read_text(encoding="utf-8").split("\n### ")[1:]
    assert [section.split("\n")[0] for section in sections] == [entry.claim.id for entry in judged]
    for entry, section in zip(judged, sections, strict=True):
        rows = [line.split(" | ") for line in section.splitlines() if line.startswith("| ") and "|---" not in line][1:]
        assert len(rows) == len(entry.evidence)
        for row, case in zip(rows, entry.evidence, strict=True):
            assert row[0].removeprefix("| ") == case.what
            assert row[2].strip() == ends(entry.claim, case)[1]
            assert row[5] == stands_words(entry.claim, case)


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


def _shifted(entry, case, stands: str):
    """The case with figures that stand as asked, at the claim's own bounds and tolerance."""
    low, high = band(entry.claim, case)
    edge = high if high is not None else low
    size = abs(edge) + 1.0
    inside = edge if high is None or low is None else (low + high) / 2
    beyond = edge + size if high is not None else edge - size
    ends = {
        "agrees": (inside, inside, inside), "disagrees": (beyond, beyond, beyond),
        "includes": (min(inside, beyond), beyond, max(inside, beyond)),
    }[stands]  # fmt: skip
    return replace(case, low=ends[0], mid=ends[1], high=ends[2], own=False, stands_in=False)


@pytest.mark.parametrize("name", [name for name in load_claims() if name not in ("c16", "c17", "c21", "c22", "c33")])
def test_a_verdict_follows_its_evidence_whichever_way_it_points(judged, name):
    """A verdict is not a constant: with the same cases all for it, all against it, or all too wide, it is another."""
    entry = next(entry for entry in judged if entry.claim.id == name)
    verdicts = {}
    for stands in ("agrees", "disagrees", "includes"):
        cases = [_shifted(entry, case, stands) for case in entry.evidence if case.mid is not None and not case.beside]
        assert {standing(entry.claim, case) for case in cases} <= {stands}
        verdicts[stands] = judge(entry.claim, cases).verdict

    if name != "c30":  # its shipped runs cannot tell: every case stands beside
        assert verdicts == {
            "agrees": "holds", "disagrees": "does_not_hold", "includes": "cannot_be_judged",
        }  # fmt: skip


def test_ratios_become_shares():
    assert (saved(2.0), unsaved(0.75), times(3.0)) == (0.5, 0.25, 3.0)


def test_a_claim_alone_is_judged_as_among_all(judged):
    from mpplan.api.claims.ledger import known_here

    alone = verdict_on(load_claims()["c20"], known_here())
    assert alone == next(entry for entry in judged if entry.claim.id == "c20")
    assert set(DECIDERS) == set(load_claims())
