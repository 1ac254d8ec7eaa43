"""Published pairs: which rows make one, what a ratio means, and that nothing unlike is compared."""

from __future__ import annotations

import pytest

from planner.claims.evidence.known import published_runs
from planner.claims.evidence.published import MEMORY, SPEED, architecture, arrow, cases, pairs, same_workloads


def pair(first: str, metrics=SPEED):
    return next(entry for entry in pairs(metrics) if first in entry.ids)


def value(name: str) -> float:
    return next(row.value for row in published_runs() if row.run.id == name)


def test_a_memory_pair_of_different_batches_is_compared_by_the_sample():
    # rows lambda-0408 and 0407: V100 32 GB, BERT-Base, micro-batches 36 and 72, 30.72 and 31.55 GiB (planner/catalog)
    entry = pair("lambda-0408", (MEMORY,))

    assert entry.ratio == pytest.approx((value("lambda-0407") / 72) / (value("lambda-0408") / 36))
    assert entry.note == "per sample"


def test_a_speed_pair_is_how_many_times_as_fast_in_every_metric():
    for entry in pairs(SPEED):
        wide, narrow = (value(name) for name in entry.ids)
        expected = wide / narrow if entry.run.metric == "step_time_s" else narrow / wide
        assert entry.ratio == pytest.approx(expected, rel=0.2)  # the median where a series was measured again
        assert entry.frm != entry.to


def test_groups_name_the_architecture_and_the_precisions():
    volta = next(case for case in cases(SPEED, float, frm=("fp32",), to=("fp16",)) if case.what.startswith("Volta"))

    assert volta.what == f"Volta, {arrow('fp32', 'fp16')}" == "Volta, FP32 → FP16"
    assert volta.count > 100
    assert volta.low < volta.mid < volta.high


@pytest.mark.parametrize(
    ("gpu", "arch"), [("h100-sxm5-80gb", "Hopper"), ("v100-32gb-unstated", "Volta"), ("abacus", "abacus")]
)
def test_a_gpu_without_its_form_still_has_its_architecture(gpu, arch):
    assert architecture(gpu) == arch


def test_no_run_of_fsdp_is_like_one_of_deepspeed():
    assert same_workloads("FSDP", "DeepSpeed") == []


def test_two_kinds_of_software_are_compared_where_everything_else_is_alike():
    found = same_workloads("PyTorch (NGC)", "TensorFlow 1 (NGC)")

    assert all(case.mid > 0 and case.source.count("and") == 1 for case in found)
