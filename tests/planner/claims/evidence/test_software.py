"""Which published runs shard with what, and what is compared."""

from __future__ import annotations

import pytest

from planner.claims.evidence.known import published_runs
from planner.claims.evidence.software import (
    DEEPSPEED,
    FSDP,
    YAFSDP,
    nearest,
    runs_with,
    same_workloads,
    shards_with,
)
from planner.validation.runs import PublishedRun
from tests.planner.claims.planted import publish_runs


def run(framework: str, stage: str = "") -> PublishedRun:
    return PublishedRun(id="r", metric="mfu", gpu="t4", framework=framework, zero_or_fsdp_stage=stage)


@pytest.mark.parametrize(
    ("framework", "stage", "expected"),
    [
        ("torchtitan 24.12", "fsdp2-8", [FSDP]),  # by its stage
        ("llm-foundry/Composer (PyTorch FSDP)", "", [FSDP]),
        ("YaFSDP", "fsdp", [YAFSDP]),
        ("DeepSpeed 0.11", "zero-3", [DEEPSPEED]),
        ("DeepSpeed 3D ZeRO-1", "", [DEEPSPEED]),
        ("Megatron-DeepSpeed", "zero-1", [DEEPSPEED]),
        ("Megatron-DeepSpeed", "", []),  # tensor and pipeline parallelism of Megatron
        ("DeepSpeed", "zero-0", []),
        ("Megatron-LM", "", []),
    ],
)
def test_a_run_shards_by_its_framework_or_its_stage(framework, stage, expected):
    assert [name for name in (FSDP, DEEPSPEED, YAFSDP) if shards_with(run(framework, stage), name)] == expected


def test_far_fewer_rows_are_of_zero_than_name_deepspeed():
    named = [row for row in published_runs() if "deepspeed" in row.run.framework.lower()]

    assert 0 < len(runs_with(DEEPSPEED)) < len(named) / 3
    assert len(runs_with(FSDP)) > 300
    assert runs_with(YAFSDP) == ()


def test_no_shipped_run_of_fsdp_is_like_one_of_deepspeed_and_the_nearest_are_shown():
    # lf-0096 (4,641 tokens/s, MPT-7B, A100) and flagperf-0003 (3,917), 0005 (4,062; Llama 2 7B, A800)
    by_pair = {case.source.split(": ")[1]: case for case in nearest(FSDP, DEEPSPEED)}

    assert same_workloads(FSDP, DEEPSPEED) == []
    assert by_pair["lf-0096 and flagperf-0003"].mid == pytest.approx(4641 / 3917)
    assert by_pair["lf-0096 and flagperf-0005"].mid == pytest.approx(4641 / 4062)
    assert all(case.beside for case in by_pair.values())
    assert "MPT-7b : Llama2-7B; a100-sxm4-80gb : a800-sxm4-80gb" in by_pair["lf-0096 and flagperf-0005"].what


def test_like_is_compared_by_the_medians_of_both_sides(monkeypatch):
    publish_runs(
        monkeypatch,
        *(("torchtitan", "fsdp2", tokens, {}) for tokens in (1100.0, 1200.0, 5000.0)),
        ("DeepSpeed", "zero-3", 1000.0, {}),
    )
    (case,) = same_workloads(FSDP, DEEPSPEED)

    assert case.mid == pytest.approx(1.2)
