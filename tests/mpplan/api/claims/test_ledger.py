"""`mpplan claims` as a function: which claims are judged, and by which record."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mpplan.api.claims.ledger import claims, known_here, to_claims_document
from planner.claims.evidence.trained import shipped_trained
from planner.errors import InputFileError, UsageError
from planner.records.home import records_dir
from tests.planner.recorded import H200, a_measurement, write_record

DOCUMENT = Path(__file__).parents[3] / "planner" / "safety" / "numerics.json"


def whole_document():
    return json.loads(DOCUMENT.read_text(encoding="utf-8"))


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


TRAINED = {"probe_id": "numerics/char-lm/parity/fp16", "kind": "numerics", "precision": "fp16", "recipe": "fp16"}


@pytest.fixture
def store(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    return records_dir()


def test_a_newer_record_of_training_alone_does_not_hide_what_was_measured(store):
    point = a_measurement(probe_id="optimizer/lamb", kind="optimizer", optimizer="lamb",
                          optimizer_state_bytes_per_param=8.0)  # fmt: skip
    write_record(store / "rates.jsonl", point)
    write_record(store / "later.jsonl", a_measurement(**TRAINED, timestamp_utc="2026-11-22T12:00:00.000+00:00"))

    assert known_here().record == "rates"
    (judged,) = claims(["c32"])
    assert [case.mid for case in judged.evidence if case.basis == "measured"] == [8.0]


def test_a_newer_record_of_a_part_of_the_suite_does_not_hide_one_of_all_of_it(store):
    point = a_measurement(**H200)
    write_record(store / "whole.jsonl", point, a_measurement(probe_id="copy", kind="bandwidth", **H200))
    write_record(store / "part.jsonl", a_measurement(**H200, timestamp_utc="2026-11-22T12:00:00.000+00:00"))

    assert known_here(None).record == "whole"


def test_training_without_its_parts_tells_nothing_and_what_ships_is_taken(store):
    write_record(store / "later.jsonl", a_measurement(**TRAINED))

    known = known_here()
    assert known.trained is None
    assert known.training == shipped_trained()


def test_a_named_document_of_training_is_evidence(tmp_path):
    document = whole_document()
    for part in document["histograms"]:
        part["overall"]["tensors"]["gradients"] |= {"values": 10, "least_exponent": -60, "counts": [10]}
    path = tmp_path / "numerics.json"
    path.write_text(json.dumps(document), encoding="utf-8")
    (judged,) = claims(["c29"], numerics=str(path))

    assert {case.source for case in judged.evidence} == {"numerics.json"}
    assert judged.verdict == "does_not_hold"  # no scale brings 2^-60 back


def test_what_is_no_document_of_training_is_refused(tmp_path):
    (tmp_path / "n.json").write_text('{"schema": "mpplan.numerics/1"}', encoding="utf-8")
    empty = tmp_path / "empty.json"
    sections = ("loss_scaling", "histograms", "parity", "sensitivity", "policy", "schedule", "tasks")
    empty.write_text(json.dumps(whole_document() | {name: [] for name in sections}), encoding="utf-8")

    for name, message in (
        ("n.json", "mpplan: missing"),
        ("empty.json", "expected training in FP16 or BF16, found none"),
    ):
        with pytest.raises(InputFileError, match=message):
            claims(["c29"], numerics=str(tmp_path / name))
