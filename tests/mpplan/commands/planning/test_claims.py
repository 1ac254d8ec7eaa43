"""`mpplan claims`: the list, one claim with its evidence, the document, and what is refused."""

from __future__ import annotations

import json


def test_the_list_names_verdict_claim_and_reason(run):
    result = run("claims", "--topic", "format")

    assert (result.code, result.err) == (0, "")
    assert "c26  HOLDS: FP16's largest finite value is 65504" in result.out
    assert "Claims: 2; holds: 2." in result.out


def test_one_claim_shows_its_arithmetic_and_sources(run):
    out = run("claims", "c20", "-q").out

    assert "verdict       holds under conditions" in out
    assert "ZeRO-3, 4 GPUs" in out
    assert "160 GB" in out  # 10 billion parameters at 16 bytes
    assert "Rajbhandari" in out


def test_verdicts_are_chosen(run):
    out = run("claims", "--topic", "format", "--verdict", "does_not_hold").out

    assert "Claims: 0; none shown." in out


def test_the_document_is_written_to_a_file(run, tmp_path):
    target = tmp_path / "claims.json"
    result = run("claims", "c27", "--json", "-o", str(target))

    assert (result.code, result.out) == (0, "")
    assert json.loads(target.read_text(encoding="utf-8"))["claims"][0]["verdict"] == "holds"


def test_what_does_not_exist_is_refused_with_what_does(run):
    claim, verdict, topic = run("claims", "c99"), run("claims", "--verdict", "maybe"), run("claims", "--topic", "art")

    assert [result.code for result in (claim, verdict, topic)] == [2, 2, 2]
    assert "unknown claim `c99`" in claim.err
    assert "verdicts are holds" in verdict.err
    assert "topics are memory" in topic.err


def test_flags_of_measuring_need_it_and_go_without_a_named_record(run):
    alone = run("claims", "--budget", "1m")
    both = run("claims", "--measure", "--records", "x.jsonl")
    device = run("claims", "--measure", "--device", "abacus")

    assert [result.code for result in (alone, both, device)] == [2, 2, 2]
    assert "--device and --budget are of --measure" in alone.err
    assert "each name a record" in both.err
    assert "unknown device `abacus`" in device.err
