"""Published pairs: which rows make one, what a ratio means, and that nothing unlike is compared."""

from __future__ import annotations

import pytest

from planner.claims.evidence.known import published_runs
from planner.claims.evidence.published import (
    BATCH,
    MEMORY,
    RECOMPUTED,
    SPEED,
    Asked,
    architecture,
    arrow,
    cases,
    contradictions,
    pairs,
)
from reports.text.messages import word

TO_FP16 = Asked(metrics=SPEED, frm=("tf32",), to=("fp16",))


def pair(first: str, metrics=SPEED):
    return next(entry for entry in pairs(metrics) if first in entry.ids)


def value(name: str) -> float:
    return next(row.value for row in published_runs() if row.run.id == name)


def test_a_card_that_was_filled_both_times_gives_the_batch_that_fits():
    # rows lambda-0408 and 0407: V100 32 GB, BERT-Base, micro-batches 36 and 72, 30.72 and 31.55 GiB (planner/catalog)
    entry = pair("lambda-0408", (MEMORY,))

    assert (entry.ratio, entry.note) == (2.0, BATCH)


def test_a_memory_pair_of_one_micro_batch_is_what_is_left():
    # rows lambda-0370 and 0369: the same micro-batch
    entry = pair("lambda-0370", (MEMORY,))

    assert entry.ratio == pytest.approx(value("lambda-0369") / value("lambda-0370"))
    assert entry.note == ""


def test_a_pair_that_also_recomputes_otherwise_is_named_so():
    # rows flagperf-0036 and 0038: TF32 with full recomputation, BF16 without any
    assert pair("flagperf-0036").note == pair("flagperf-0037", (MEMORY,)).note == RECOMPUTED


def test_unlike_pairs_stand_beside():
    made = cases(Asked(metrics=(MEMORY,), frm=("fp32",), to=("fp16",)), float)

    assert {(case.beside, case.unit) for case in made if case.what.endswith(BATCH)} == {(True, "ratio")}


def test_a_speed_pair_is_how_many_times_as_fast_in_every_metric():
    for entry in pairs(SPEED):
        wide, narrow = (value(name) for name in entry.ids)
        expected = wide / narrow if entry.run.metric == "step_time_s" else narrow / wide
        assert entry.ratio == pytest.approx(expected, rel=0.2)  # the median where a series was measured again
        assert entry.frm != entry.to


def test_groups_name_the_architecture_and_the_precisions():
    made = cases(Asked(metrics=SPEED, frm=("fp32",), to=("fp16",)), float)
    volta = next(case for case in made if case.what.startswith("Volta"))

    assert volta.what == f"Volta, {arrow('fp32', 'fp16')}" == "Volta, FP32 → FP16"
    assert volta.count > 100
    assert volta.low < volta.mid < volta.high


@pytest.mark.parametrize(
    ("gpu", "arch"), [("h100-sxm5-80gb", "Hopper"), ("v100-32gb-unstated", "Volta"), ("abacus", "abacus")]
)
def test_a_gpu_without_its_form_still_has_its_architecture(gpu, arch):
    assert architecture(gpu) == arch


def test_the_pairs_at_the_ends_of_a_range_are_named():
    ampere = next(case for case in cases(TO_FP16, float) if case.what.startswith("Ampere"))

    assert "least dle-0085 and dle-0086, most" in ampere.source


def test_a_row_that_contradicts_its_neighbours_is_named():
    # dle-0085 and 0086: 357.91 samples/s in TF32 and 230.16 in FP16; nine others of the model gain 1.48 times or more
    (note,) = contradictions(TO_FP16)

    assert "dle-0085 and dle-0086 set the low end: 0.643 times as fast, while the 9 other pairs" in word(note)
    assert contradictions(Asked(metrics=SPEED, frm=("fp32",), to=("fp16",))) == []
