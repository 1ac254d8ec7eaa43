"""Speed: planted pairs and plans on either side of each claim."""

from __future__ import annotations

import pytest

from planner.claims.claim import load_claims
from planner.claims.evidence.published import RECOMPUTED
from planner.claims.standing import standing
from reports.text.messages import word
from tests.planner.claims.planted import judged, pair, planner, publish, publish_runs


def standings(entry):
    return {case.what: standing(entry.claim, case) for case in entry.evidence}


@pytest.mark.parametrize(
    ("name", "saved", "verdict"),
    [
        ("c06", 0.50, "holds"),  # 2 times
        ("c06", 0.90, "does_not_hold"),  # 10 times
        ("c07", 0.39, "holds"),  # 18 h to 11 h
        ("c07", 0.50, "does_not_hold"),
        ("c08", 0.375, "holds"),
        ("c08", 0.20, "does_not_hold"),
        ("c10", 2 / 3, "holds"),  # 3 times
        ("c10", 0.50, "does_not_hold"),  # 2 times
        ("c11", 0.50, "holds_under_conditions"),  # a plan of 2 times; the shipped products gain less
        ("c11", 0.20, "does_not_hold"),
        ("c23", 5 / 6, "holds"),  # 6 times
        ("c23", 0.50, "does_not_hold"),  # 2 times: nothing comes near
        ("c23", 0.92, "does_not_hold"),  # 12.5 times: beyond
    ],
)
def test_plans_decide_by_what_they_save(monkeypatch, name, saved, verdict):
    publish(monkeypatch)

    assert judged(name, planner(saved=saved)).verdict == verdict


@pytest.mark.parametrize(
    ("name", "saved", "width"),
    [("c06", 0.75, 0.1), ("c07", 0.6, 0.25), ("c08", 0.6, 0.25), ("c10", 0.5, 0.25), ("c23", 0.9, 0.08)],
)
def test_plans_whose_ranges_reach_both_ways_decide_nothing(monkeypatch, name, saved, width):
    publish(monkeypatch)
    entry = judged(name, planner(saved=saved, width=width))

    assert entry.verdict == "cannot_be_judged"
    assert set(standings(entry).values()) == {"includes"}
    assert entry.words.key == "claim.too_wide"


@pytest.mark.parametrize(
    ("ratio", "verdict"), [(1.8, "holds_under_conditions"), (1.72, "holds_under_conditions"), (1.7, "does_not_hold")]
)
def test_mixed_precision_of_1_8_times_leaves_fp16_alone_open(monkeypatch, ratio, verdict):
    # a tenth of the gain of 0.8 beside 1.8: 1.72 to 1.88
    publish(monkeypatch, (pair(ratio),))
    entry = judged("c12", planner())

    assert entry.verdict == verdict
    assert "without FP32 copies" in word(entry.words)


def test_tf32_counts_as_what_mixed_precision_replaces(monkeypatch):
    publish(monkeypatch, (pair(1.8, frm="tf32"), pair(3.2)))

    assert standings(judged("c12", planner())) == {
        "Volta, TF32 → FP16": "agrees", "Volta, FP32 → FP16": "disagrees", "FP16, no FP32 weights": "not_found"
    }  # fmt: skip


def test_fp8_is_judged_by_mxfp8_too_and_the_peak_stands_beside(monkeypatch):
    publish(monkeypatch, (pair(1.3, frm="bf16", to="mxfp8", model="DeepSeek-V3-671B"),))
    by_case = standings(judged("c11", planner(saved=0.2)))

    assert by_case["DeepSeek-V3, Volta, BF16 → MXFP8"] == "disagrees"
    assert by_case["h800-sxm5-80gb, BF16 → FP8, peak"] == "beside"


def test_the_shipped_pairs_of_deepseek_v3_are_among_them(monkeypatch):
    mids = {case.what: case.mid for case in judged("c11", planner()).evidence}

    assert mids["DeepSeek-V3, Blackwell Ultra, BF16 → MXFP8"] == pytest.approx(4357 / 3848)  # mb-0239, mb-0238
    assert mids["DeepSeek-V3, Blackwell, BF16 → MXFP8"] == pytest.approx(4018 / 3139)  # mb-0248, mb-0247


def test_a_pair_that_also_recomputes_otherwise_stands_beside(monkeypatch):
    publish(monkeypatch, (pair(2.0, RECOMPUTED),))

    assert standings(judged("c06", planner()))["Volta, FP32 → FP16, other recomputation"] == "beside"


def test_a_row_that_contradicts_its_neighbours_is_named_and_kept(monkeypatch):
    publish(monkeypatch, (pair(0.64), *(pair(value) for value in (1.5, 1.6, 1.7))))
    entry = judged("c06", planner())
    case = next(case for case in entry.evidence if case.what == "Volta, FP32 → FP16")

    assert (case.low, case.count) == (0.64, 4)
    assert "a-1 and a-2 set the low end: 0.64 times as fast" in word(entry.notes[0])


def test_products_four_times_as_fast_lie_within_2_to_8_and_twenty_times_beyond(monkeypatch):
    for gain, expected in ((4.0, "agrees"), (20.0, "disagrees")):
        entry = judged("c09", planner(products=gain))
        plans = [case for case in entry.evidence if case.basis == "planner"]
        assert {standing(entry.claim, case) for case in plans} == {expected}


FSDP = ("torchtitan", "fsdp2", 1170.0, {})


@pytest.mark.parametrize(
    ("other", "verdict"),
    [
        (("DeepSpeed", "zero-3", 1000.0, {}), "holds"),  # 1.17 times on the same workload
        (("DeepSpeed", "zero-3", 1170.0, {}), "does_not_hold"),
        (("Megatron-DeepSpeed", "", 1000.0, {}), "cannot_be_judged"),  # no ZeRO
        (("DeepSpeed", "zero-3", 1000.0, {"micro_batch": 8}), "cannot_be_judged"),  # beside: it differs
        (("DeepSpeed", "zero-3", 1000.0, {"params_total": 13e9, "model": "X-13B"}), "cannot_be_judged"),
    ],
)
def test_fsdp_and_deepspeed_are_judged_like_for_like_alone(monkeypatch, other, verdict):
    publish_runs(monkeypatch, FSDP, other)

    assert judged("c21", planner()).verdict == verdict


def test_near_pairs_of_software_stand_beside_with_what_differs(monkeypatch):
    publish_runs(monkeypatch, FSDP, ("DeepSpeed", "zero-3", 1000.0, {"micro_batch": 8}))
    (near,) = [case for case in judged("c21", planner()).evidence if case.mid is not None]

    assert (near.mid, near.beside) == (pytest.approx(1.17), True)
    assert near.what == "micro-batch 4 : 8; 8 GPUs, seq 2048"


@pytest.mark.parametrize(("tokens", "verdict"), [(1170.0, "holds"), (1280.0, "does_not_hold")])
def test_yafsdp_is_judged_where_a_row_names_it(monkeypatch, tokens, verdict):
    publish_runs(monkeypatch, ("PyTorch FSDP", "", 1000.0, {}), ("YaFSDP", "", tokens, {}))

    assert judged("c22", planner()).verdict == verdict  # a tenth of the gain beside 1.10 to 1.25: up to 1.275


def test_no_shipped_row_names_yafsdp_and_that_is_said():
    entry = judged("c22", planner())

    assert entry.verdict == "cannot_be_judged"
    assert "names YaFSDP" in word(entry.words)


def test_that_nobody_waits_is_no_evidence():
    entry = judged("c33", planner())

    assert entry.verdict == "cannot_be_judged"
    assert [case.mid > 1.0 for case in entry.evidence if case.beside] == [True] * 3
    assert load_claims()["c33"].low is None
