"""Speed: what published runs decide, and what is looked at where they do not."""

from __future__ import annotations

from planner.claims.claim import load_claims
from planner.claims.decided.speed import asynchronous, fp16_alone, yafsdp
from planner.claims.evidence.known import Known
from planner.claims.verdict import judge
from reports.text.messages import word


def no_answer(**inputs):
    raise AssertionError("published runs need no plan")


KNOWN = Known(ask=no_answer)


def test_what_nobody_published_is_said_with_what_was_looked_at():
    judged = judge(load_claims()["c22"], yafsdp(KNOWN).cases)

    assert judged.verdict == "cannot_be_judged"
    assert "0 are with YaFSDP" in word(judged.words)
    assert judged.decided_by == ("published",)


def test_fp16_without_fp32_weights_is_in_no_run():
    assert [case.what for case in fp16_alone(KNOWN).cases if case.mid is None] == ["FP16, no FP32 weights"]


def test_waiting_for_the_slowest_costs_more_the_more_there_are():
    waits = [case.mid for case in asynchronous(KNOWN).cases if case.mid is not None]

    assert waits == sorted(waits)
    assert 1.0 < waits[0] < waits[-1] < 1.25  # 5 % of jitter, three standard deviations at most
