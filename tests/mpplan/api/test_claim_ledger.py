"""`mpplan claims` as a function: which claims are judged, and by which record."""

from __future__ import annotations

import pytest

from mpplan.api.claim_ledger import claims, known_here, to_claims_document
from planner.errors import InputFileError, UsageError
from tests.planner.recorded import H200, a_measurement, write_record


def test_claims_are_chosen_by_id_and_topic():
    assert [entry.claim.id for entry in claims(["c27", "C26", "c27"])] == ["c27", "c26"]
    assert {entry.claim.topic for entry in claims(topics=["format"])} == {"format"}
    with pytest.raises(UsageError, match="unknown topic `weather`"):
        claims(topics=["weather"])


def test_a_named_record_is_evidence(tmp_path):
    shape = {"kind": "end_to_end", "model": "bert-large", "layers": 4, "recompute": "none", "compiled": False}
    record = write_record(
        tmp_path / "mine.jsonl",
        a_measurement(probe_id="a", recipe="fp32", time_median_s=0.3, **shape, **H200),
        a_measurement(probe_id="b", recipe="tf32", time_median_s=0.1, **shape, **H200),
    )

    assert known_here(str(record)).record == "mine"
    (judged,) = claims(["c10"], records=str(record))
    assert judged.evidence[0].source == "mine: b"
    assert judged.verdict == "holds_under_conditions"  # 3 times here; the planner says otherwise of an A100


def test_what_is_no_record_is_refused(tmp_path):
    (tmp_path / "text.jsonl").write_text("not a record\n", encoding="utf-8")

    with pytest.raises(InputFileError):
        claims(["c26"], records=str(tmp_path / "text.jsonl"))


def test_progress_is_told_of_every_claim():
    told: list[int] = []
    claims(["c26", "c27"], watch=lambda total: told.append(-total) or told.append)

    assert told == [-2, 1, 2]


def test_the_document_has_words_beside_their_messages():
    (claim,) = to_claims_document(claims(["c27"]))["claims"]

    assert claim["words_message"]["key"] == "claim.holds"
    assert claim["words"].startswith("Every case agrees")
