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


def test_named_claims_without_the_verdict_say_so_and_which_they_have(run):
    result = run("claims", "c26", "c27", "--verdict", "does_not_hold")

    assert (result.code, result.out) == (0, "No claim matches. c26: holds; c27: holds.\n")


def test_the_document_is_written_to_a_file(run, tmp_path):
    target = tmp_path / "claims.json"
    result = run("claims", "c27", "--json", "-o", str(target))

    assert (result.code, result.out) == (0, "")
    assert json.loads(target.read_text(encoding="utf-8"))["claims"][0]["verdict"] == "holds"


def test_what_does_not_exist_is_refused_with_what_does(run):
    claim, verdict, topic = run("claims", "c99"), run("claims", "--verdict", "maybe"), run("claims", "--topic", "art")

    assert [result.code for result in (claim, verdict, topic)] == [2, 2, 2]
    assert "unknown claim `c99`" in claim.err
    assert "use one of holds, holds_under_conditions" in verdict.err
    assert "topics are memory" in topic.err


def test_flags_of_measuring_need_it_and_go_without_a_named_record(run):
    alone = run("claims", "--budget", "1m")
    named = run("claims", "--measure", "--records", "x.jsonl")
    device = run("claims", "--measure", "--device", "abacus")

    assert [result.code for result in (alone, named, device)] == [2, 2, 2]
    assert "--device and --budget only apply with --measure" in alone.err
    assert "each name a record" in named.err
    assert "unknown device `abacus`" in device.err


def test_a_wrong_id_or_topic_is_refused_before_anything_is_measured(run):
    claim = run("claims", "c99", "--measure", "--device", "cpu")
    topic = run("claims", "--topic", "nope", "--measure", "--device", "cpu")
    nothing = run("claims", "c26", "--measure", "--device", "cpu")

    assert (claim.code, topic.code, nothing.code) == (2, 2, 4)
    assert "unknown claim `c99`" in claim.err
    assert "unknown topic `nope`" in topic.err
    assert "no measurement says anything about c26" in nothing.err


def test_a_range_too_wide_and_a_case_left_out_are_shown_as_such(run):
    out = run("claims", "c25", "-q").out

    assert "too wide" in out
    assert "left out" in out
    assert "does not fit in memory" in out
    assert "\ntoo wide " in out  # the first column: a narrow terminal cuts the others


def test_a_document_of_training_that_is_none_is_refused(run, tmp_path):
    (tmp_path / "n.json").write_text("{}", encoding="utf-8")
    result = run("claims", "c29", "--numerics", str(tmp_path / "n.json"))

    assert (result.code, result.out) == (3, "")
    assert "mpplan numerics --json" in result.err
