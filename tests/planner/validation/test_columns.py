"""Columns of words: what is understood, what counts as blank and is named; no shipped row has such a word."""

from __future__ import annotations

import pytest

from planner.errors import Message
from planner.rows import CATALOG, read_rows
from planner.validation.columns import Sharding, parse_ckpt, parse_sharding, understood, unknown_words
from planner.validation.runs import PublishedRun, parse_run
from planner.validation.setup import prepare_run


@pytest.mark.parametrize(
    ("text", "stage", "group"),
    [
        ("none", 0, None),
        ("no", 0, None),
        ("3.0", 3, None),  # as pandas writes it where the column has a blank
        ("0.0", 0, None),
        ("none (DDP/Horovod)", 0, None),
        ("zero-0", 0, None),
        ("zero-1 over all DP", 1, None),
        ("zero-1 within 8 GPUs", 1, 8),
        ("zero-1 within 4", 1, 4),
        ("ddp+distributed-optimizer", 1, None),
        ("fsdp-shard_grad_op(zero2)", 2, None),
        ("fsdp-full_shard(zero3)", 3, None),
        ("fsdp2-8", 3, 8),
        ("fsdp-128-way", 3, 128),
        ("fsdp2", 3, None),
        ("HSDP-16", 3, 16),
        ("zero-3", 3, None),
    ],
)
def test_a_sharding_text_says_stage_and_group(text, stage, group):
    assert parse_sharding(text) == Sharding(stage=stage, group=group, in_gpus="within" in text)


def test_a_blank_or_unknown_text_says_nothing():
    assert parse_sharding("") is None
    assert parse_sharding("sharded somehow") is None
    assert parse_sharding("unknown") is None  # which has a `no` in it
    assert parse_ckpt("selective (norm, act)") == "selective"
    assert parse_ckpt("block 12") is None
    assert parse_ckpt("Every-2 layers") == "every-2"


@pytest.mark.parametrize(
    ("column", "text", "read"),
    [
        ("compile", "True", "y"),
        ("compile", "1.0", "y"),
        ("compile", "false", "n"),
        ("compile", "yes", "yes"),
        ("fused_loss", "true", "y"),
        ("in_backward", "0", "n"),
        ("attention", "eager", "eager"),
        ("attention", "foo", ""),
        ("compile", "maybe", ""),
        ("act_ckpt", "yes", ""),
        ("zero_or_fsdp_stage", "9", ""),
        ("zero_or_fsdp_stage", "-1", ""),
        ("zero_or_fsdp_stage", "three", ""),
        ("method", "LoRA", "lora"),
        ("method", "Full", "sft"),
        ("method", "none of them", "none of them"),
        ("policy", "BF16-pure", "bf16-pure"),
    ],
)
def test_a_word_is_read_as_programs_and_people_spell_it(column, text, read):
    assert understood(column, text) == read


ROW = {
    "id": "r1", "model": "Llama3-8B", "precision": "bf16", "gpu": "h100-sxm5-80gb", "n_gpus": "8", "seq_len": "4096",
    "global_batch_seqs": "8", "micro_batch": "1", "tp": "1", "pp": "1", "framework": "FSDP", "metric": "step_time_s",
}  # fmt: skip


def as_run(**cells: str) -> PublishedRun:
    run = parse_run(ROW | cells)
    assert isinstance(run, PublishedRun)
    return run


@pytest.mark.parametrize(
    ("written", "known"),
    [
        ({"zero_or_fsdp_stage": "1.0"}, {"zero_or_fsdp_stage": "1"}),
        ({"compile": "True"}, {"compile": "y"}),
        ({"attention": "eager"}, {"attention": "naive"}),
        ({"attention": "foo", "act_ckpt": "ful", "zero_or_fsdp_stage": "9", "compile": "maybe"}, {}),
        ({"method": "QLoRA"}, {"method": "qlora"}),
    ],
)
def test_a_row_is_predicted_as_the_one_that_says_the_same_in_known_words(written, known):
    read, expected = (prepare_run(as_run(**cells)) for cells in (written, known))

    assert (read.recipe, read.layouts.at(0), read.filled) == (expected.recipe, expected.layouts.at(0), expected.filled)


def test_words_that_say_nothing_are_named_with_their_rows():
    cells = ROW | {"act_ckpt": "yes", "network": "400", "compile": "True"}

    def told(column: str, text: str) -> Message:
        return Message.of("skipped.unknown_word", column=column, text=text)

    assert unknown_words([cells, cells | {"id": "", "act_ckpt": "full", "network": "NVLink"}, {"network": "400"}]) == {
        told("act_ckpt", "yes"): ["r1"],
        told("network", "400"): ["r1", "line 4"],
    }


def test_an_unknown_method_lists_those_that_there_are():
    reason = prepare_run(as_run(method="dropout")).reason

    assert reason.startswith("method: unknown `dropout`; known are pretrain, ")
    assert "qlora" in reason


@pytest.mark.parametrize("name", ["published_runs.csv", "sweep_runs.csv"])
def test_no_shipped_row_has_a_word_that_is_not_known(name):
    told = unknown_words(row.cells for row in read_rows(CATALOG / name))

    assert {dict(message.values)["column"] for message in told} <= {"network"}  # which quotes whole lists of parts
