"""The rows of gradient compressions."""

from __future__ import annotations

import pytest

from planner.errors import UsageError
from planner.training.grad_compression import find_grad_compression, load_grad_compressions
from planner.training.recipe import STACKS


def test_none_is_no_method_and_names_do_not_mind_punctuation():
    assert find_grad_compression("none") is None
    assert find_grad_compression("Power-SGD") is load_grad_compressions()["powersgd"]
    assert find_grad_compression("1-bit") is load_grad_compressions()["1bit"]
    with pytest.raises(UsageError):
        find_grad_compression("zip")


def test_a_rank_follows_a_colon_where_the_method_has_one():
    given = find_grad_compression("powersgd:32")

    assert given is not None
    assert (given.rank, given.id) == (32, "powersgd")
    for wrong in (
        "powersgd:0",
        "powersgd:-1",
        "powersgd:",
        "powersgd:1.5",
        "powersgd:2000",
        "powersgd:²",
        "1bit:4",
        "fp8:1",
    ):
        with pytest.raises(UsageError):
            find_grad_compression(wrong)


def test_1_bit_adam_goes_with_no_sharding_and_with_deepspeed_alone_and_powersgd_with_ddp():
    rows = load_grad_compressions()

    # deepspeed/runtime/engine.py: "1bit-Adam is not compatible with ZeRO"
    assert (rows["1bit"].most_zero, rows["1bit"].stacks) == (0, ("classic",))
    assert rows["powersgd"].stacks == ("fsdp-compile", "eager")
    assert rows["fp8"].stacks == ()
    assert all(set(row.stacks) <= set(STACKS) for row in rows.values())


def test_powersgds_evidence_says_that_transformers_were_not_shown_and_its_warm_up_is_that_of_the_hook():
    row = load_grad_compressions()["powersgd"]
    hook = pytest.importorskip("torch.distributed.algorithms.ddp_comm_hooks.powerSGD_hook")

    assert "not shown for transformers" in row.evidence.what
    assert "start with 10% of total training steps" in " ".join(hook.PowerSGDState.__doc__.split())
    assert row.warmup_ratio == 0.1


def test_every_row_cites_the_file_that_its_passes_are_counted_in():
    for row in load_grad_compressions().values():
        assert "https://github.com/" in row.evidence.source
        assert ".py" in row.evidence.source


def test_every_row_quotes_its_papers_effect_on_accuracy():
    for row in load_grad_compressions().values():
        assert "published effect on accuracy: " in row.evidence.what
        assert "arXiv" in row.evidence.source
        assert bool(row.rank) != bool(row.sent_bits)


def test_the_bytes_of_1_bit_adam_over_a_run_are_what_its_paper_states_beside_fp16_gradients():
    row = load_grad_compressions()["1bit"]

    # w + (1 - w) / 16 of the volume, w = 15 % of the steps: 4.9 times fewer; the paper says up to 5
    run_ratio = 1 / (row.warmup_ratio + (1 - row.warmup_ratio) * row.sent_bits / 16)
    assert run_ratio == pytest.approx(row.published_bytes_ratio, rel=0.05)
