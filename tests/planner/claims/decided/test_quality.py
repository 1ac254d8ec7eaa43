"""What training showed: planted documents on either side of each threshold."""

from __future__ import annotations

import pytest

from planner.claims.evidence.known import Known
from planner.claims.standing import standing
from reports.text.messages import word
from tests.planner.claims.planted import judged, planner, publish, trained


def no_answer(**inputs):
    raise AssertionError("training needs no plan")


def known(**figures) -> Known:
    return Known(ask=no_answer, trained=trained(**figures))


def standings(entry):
    return {case.what: standing(entry.claim, case) for case in entry.evidence}


@pytest.mark.parametrize(
    ("counts", "recovered", "verdict"),
    [
        ({0: 90, -27: 6, -50: 4}, 0.6, "holds_under_conditions"),  # 2^3 brings -27 back, nothing brings -50 back
        ({0: 90, -27: 4, -50: 6}, 0.4, "does_not_hold"),
    ],
)
def test_a_scale_recovers_where_it_brings_most_back(counts, recovered, verdict):
    entry = judged("c29", known(counts=counts))

    assert [case.mid for case in entry.evidence] == [pytest.approx(recovered)] * 3
    assert entry.verdict == verdict
    assert "10.00%" in word(entry.notes[2])  # 10 of 100 flushed without a scale


def test_only_larger_scales_recover_smaller_gradients():
    by_case = standings(judged("c29", known(counts={0: 90, -27: 1, -34: 9})))  # -34 needs 2^9

    assert list(by_case.values()) == ["agrees", "agrees", "disagrees"]
    assert by_case["digits, FP16, loss scale 8"] == "disagrees"


def test_a_scale_that_overflows_recovers_nothing():
    by_case = standings(judged("c29", known(overflows_from_log2=15)))

    assert by_case["digits, FP16, loss scale 32,768, ∞"] == "disagrees"
    assert judged("c29", known(overflows_from_log2=3)).verdict == "does_not_hold"


def test_where_nothing_is_flushed_there_is_nothing_to_recover():
    entry = judged("c29", known(counts={0: 100}))

    assert entry.verdict == "cannot_be_judged"
    assert "nothing to recover" in word(entry.words)


@pytest.mark.parametrize(
    ("interval", "verdict"),
    [
        ((-0.0009, 0.0, 0.0009), "holds_under_conditions"),  # at most 0.09 points are lost
        ((-0.0011, 0.0, 0.0011), "cannot_be_judged"),  # across the tenth of a point
        ((-0.03, 0.0, 0.03), "cannot_be_judged"),  # a mean of nothing tells nothing
        ((-0.02, -0.01, -0.0011), "does_not_hold"),  # at least 0.11 points are lost
    ],
)
def test_accuracy_is_judged_by_the_interval_not_by_its_middle(interval, verdict):
    entry = judged("c30", known(interval=interval))

    assert entry.verdict == verdict
    if verdict == "cannot_be_judged":
        assert "pairs would be enough to tell" in word(entry.words)


@pytest.mark.parametrize(("baseline", "verdict"), [(0.93, "holds_under_conditions"), (0.91, "cannot_be_judged")])
def test_a_run_counts_where_fp32_reaches_the_accuracy_of_the_claim(baseline, verdict):
    entry = judged("c30", known(baseline=baseline, interval=(-0.002, -0.0015, 0.0005)))
    fine = judged("c30", known(baseline=baseline))

    assert fine.verdict == verdict
    assert ("lost in BF16 was 0.1% (−0.1% to 0.2%), but" in word(entry.words)) == (baseline < 0.92)


def stability(monkeypatch, **figures):
    publish(monkeypatch)
    entry = judged("c31", Known(ask=planner(narrow_gib=20.0, saved=0.0).ask, trained=trained(**figures)))
    return entry, [standing(entry.claim, case) for case in entry.evidence if case.basis == "trained"]


@pytest.mark.parametrize(
    ("counts", "bf16_flushed_ratio", "stands"),
    [
        ({0: 998, -40: 2}, 0.0, "agrees"),  # 2 of 1000 gradients
        ({0: 9995, -40: 5}, 0.0, "disagrees"),  # 1 of 2000
        ({0: 900, -40: 100}, 0.1, "disagrees"),  # BF16 loses as many
    ],
)
def test_bf16_is_more_stable_without_a_scaler_where_fp16_flushes(monkeypatch, counts, bf16_flushed_ratio, stands):
    entry, _ = stability(monkeypatch, counts=counts, bf16_flushed_ratio=bf16_flushed_ratio)

    assert standings(entry)["digits, ∇ → 0, FP16 − BF16, loss scale 1"] == stands


@pytest.mark.parametrize(
    ("figures", "stands"),
    [
        ({"long_run": 0.0005, "skipped": 0}, "disagrees"),  # one step in 2000 is not noticed
        ({"long_run": 0.002, "skipped": 1}, "agrees"),
        ({"long_run": 0.0005, "skipped": 5}, "includes"),
    ],
)
def test_fp16_with_a_scaler_loses_steps(monkeypatch, figures, stands):
    entry, _ = stability(monkeypatch, **figures)

    assert standings(entry)["digits, FP16, GradScaler, skipped steps"] == stands


def test_bf16_that_diverges_is_not_stable(monkeypatch):
    name = "digits, BF16, no scaler, diverged runs"

    assert standings(stability(monkeypatch)[0])[name] == "agrees"
    assert standings(stability(monkeypatch, diverged=1)[0])[name] == "disagrees"


def test_small_models_alone_never_settle_stability(monkeypatch):
    entry, outcomes = stability(monkeypatch, long_run=0.002, skipped=1)

    assert outcomes == ["agrees"] * 3
    assert entry.verdict == "holds_under_conditions"
    assert "No available published run reports overflows" in word(entry.words)
