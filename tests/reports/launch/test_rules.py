"""What the rules read from a policy and a layout."""

from __future__ import annotations

import pytest

from reports.launch.rules import is_pure, keeps_masters, narrow_gradients, scaled, shards_fp32, stage
from tests.reports.launch.runs import run_of


@pytest.mark.parametrize(
    ("name", "masters", "fp32_shards", "pure", "narrow"),
    [
        ("dense", True, False, False, False),
        ("bf16-fsdp", False, True, False, False),
        ("autocast", False, True, False, False),
        ("pure", False, False, True, False),
        ("bf16-bf16-grad", True, False, False, True),
        ("bf16-fsdp-bf16-reduce", False, True, False, True),
    ],
)
def test_a_policy_is_one_of_three_kinds(name, masters, fp32_shards, pure, narrow):
    run = run_of(name)

    assert (keeps_masters(run), shards_fp32(run), is_pure(run)) == (masters, fp32_shards, pure)
    assert narrow_gradients(run) is narrow


def test_fp32_is_none_of_them():
    run = run_of("dense", "fp32")

    assert not any(kind(run) for kind in (keeps_masters, shards_fp32, is_pure, narrow_gradients))


def test_fp8_scales_as_its_policy_says():
    assert scaled(run_of("fp8-delayed"), "delayed")
    assert scaled(run_of("mxfp8"), "tensorwise", "mx")
    assert not scaled(run_of("dense"), "tensorwise")


def test_one_rank_has_no_stage():
    assert stage(run_of("lora")) == 0
    assert stage(run_of("dense-zero2")) == 2
