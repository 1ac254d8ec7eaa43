"""Memory: states by arithmetic, planted peaks on either side of each claim, and what the optimizer rows say."""

from __future__ import annotations

from dataclasses import replace

import pytest

from planner.claims.decided.memory import gpt3_state
from planner.claims.evidence.known import Known
from planner.claims.evidence.published import BATCH
from planner.claims.standing import standing
from reports.text.messages import word
from tests.planner.claims.planted import judged, pair, planner, publish
from tests.planner.recorded import a_measurement


def no_answer(**inputs):
    raise AssertionError("states need no plan")


def standings(entry):
    return {case.what: standing(entry.claim, case) for case in entry.evidence}


@pytest.mark.parametrize(
    ("name", "gib", "verdict"),
    [
        ("c01", 20.0, "holds"),  # half of 40
        ("c01", 30.0, "does_not_hold"),  # a quarter less
        ("c05", 22.4, "holds"),  # 44 % less
        ("c05", 30.0, "does_not_hold"),
    ],
)
def test_peaks_of_plans_decide(monkeypatch, name, gib, verdict):
    publish(monkeypatch)

    assert judged(name, planner(narrow_gib=gib)).verdict == verdict


def test_a_card_that_was_filled_both_times_says_nothing_of_a_step(monkeypatch):
    publish(monkeypatch, memory=(pair(2.0, BATCH),))
    entry = judged("c01", planner(narrow_gib=30.0))

    assert entry.verdict == "does_not_hold"
    assert standings(entry)["Volta, FP32 → FP16, batch that fits"] == "beside"


@pytest.mark.parametrize(("left", "stands"), [(0.5, "agrees"), (0.9, "disagrees")])
def test_a_published_pair_of_one_micro_batch_counts(monkeypatch, left, stands):
    publish(monkeypatch, memory=(pair(left),))

    assert standings(judged("c01", planner()))["Volta, FP32 → FP16"] == stands
    assert standings(judged("c05", planner()))["BERT-Large, Volta, FP32 → FP16"] == "disagrees"


def test_storing_everything_in_16_bits_halves_the_states_and_nothing_else_does():
    by_case = standings(judged("c02", planner(narrow_gib=20.0)))

    assert by_case["bf16-pure, adamw: 8 B / 16 B"] == "agrees"
    assert by_case["fp16, adamw: 16 B / 16 B"] == "disagrees"
    assert judged("c02", planner(narrow_gib=40.0)).verdict == "holds_under_conditions"


@pytest.mark.parametrize(("params", "verdict"), [(3e9, "holds"), (1.9e9, "holds"), (1.5e9, "does_not_hold")])
def test_what_fits_is_at_least_what_is_claimed(params, verdict):
    assert judged("c03", planner(fits_up_to=params)).verdict == verdict  # 2 billion, within a tenth


def test_gpt_3s_states_are_multiplied_out():
    note, optimizer = gpt3_state(Known(ask=no_answer)).notes

    # 174.6e9 parameters at 16, 16 and 10.03 bytes
    assert "2.79 TB in FP32, 2.79 TB in mixed precision, 1.75 TB with 8-bit" in word(note)
    assert "not the precision's" in word(optimizer)


def test_gpt_3s_saving_is_that_of_the_optimizers_states_in_fp32_as_well():
    by_case = standings(judged("c04", Known(ask=no_answer)))

    assert {what for what, stands in by_case.items() if stands == "agrees"} == {
        "fp16-zero, adamw-8bit: 10.03 B / 16 B", "fp32, adamw-8bit: 10.03 B / 16 B",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("left", "verdict"), [(3.0, "holds"), (0.6, "does_not_hold"), (9.0, "does_not_hold")]
)  # 75 %, 95 % and 25 % of 12 GiB
def test_recomputation_saves_up_to_three_quarters(left, verdict):
    assert judged("c18", planner(recomputed_gib=left)).verdict == verdict


def test_recomputation_that_saves_nothing_is_left_out_and_agrees_with_nothing():
    entry = judged("c18", planner(recomputed_gib=12.0))

    assert entry.verdict == "cannot_be_judged"
    assert set(standings(entry).values()) == {"left_out"}
    assert "nothing to save" in word(entry.words)


@pytest.mark.parametrize(("slower", "verdict"), [(1.3, "holds"), (1.6, "does_not_hold"), (1.05, "does_not_hold")])
def test_recomputation_costs_time(slower, verdict):
    assert judged("c19", planner(slower=slower)).verdict == verdict


def test_zero_3_has_the_share_of_four_gpus_and_not_the_gigabytes():
    entry = judged("c20", planner(sharded_gib=5.0))  # of 20
    by_case = standings(entry)

    assert entry.verdict == "holds_under_conditions"
    assert by_case["ZeRO-3, 4 GPUs"] == "agrees"
    assert by_case["ZeRO-3, 8 GPUs"] == "disagrees"
    assert by_case["10B, fp16-zero, adamw, 1 GPU"] == by_case["100B, fp16-zero, adamw, 1 GPU"] == "disagrees"
    assert {by_case[what] for what in by_case if what.endswith("peak")} == {"agrees"}
    assert {case.mid for case in entry.evidence if case.unit == "gb"} == {160.0, 1600.0}  # 16 bytes a parameter


@pytest.mark.parametrize(("read", "stands"), [(8.0, "agrees"), (12.0, "disagrees"), (4.0, "disagrees")])
def test_a_measured_state_is_evidence_beside_the_row(read, stands):
    point = a_measurement(
        probe_id="optimizer/lamb", kind="optimizer", optimizer="lamb", optimizer_state_bytes_per_param=read
    )
    by_case = standings(judged("c32", Known(ask=no_answer, points=(point,))))

    assert by_case["lamb, Some CPU"] == stands
    assert by_case["sophia"] == "disagrees"  # it keeps two moments, as AdamW does


def test_the_states_of_adamw_and_of_8_bits_are_shown_and_times_come_with_what_they_are_of():
    points = [
        a_measurement(
            probe_id=f"optimizer/{name}", kind="optimizer", optimizer=name, optimizer_state_bytes_per_param=bytes_each
        )
        for name, bytes_each in (("adamw", 8.0), ("adamw-8bit", 2.03))
    ]
    entry = judged("c32", Known(ask=no_answer, points=tuple(points)))

    assert {case.what: case.mid for case in entry.evidence if case.basis == "measured" and case.unit is None} == {
        "adamw, Some CPU": 8.0, "adamw-8bit, Some CPU": 2.03,
    }  # fmt: skip
    assert "fused kernel" in word(entry.notes[0])
    assert judged("c32", Known(ask=no_answer, points=(replace(points[0]),))).notes == ()
