"""A plan read from an answer, by an answer's echo of the question."""

from __future__ import annotations

import json
from math import ceil

import pytest

from planner.errors import UsageError
from reports.launch.planned_run import planned_run
from tests.reports.launch.grid import answer
from tests.reports.launch.runs import run_of


def test_steps_are_tokens_over_the_tokens_of_a_step_rounded_up() -> None:
    run = run_of("dense")

    assert run.steps == ceil(1e9 / (run.layout.global_batch * 8192))
    assert (run.model, run.gpu, run.gpus, run.nodes, run.gpus_per_node) == ("llama-3-8b", "h100-sxm5-80gb", 8, 1, 8)
    assert run.count("kv_heads") == 8


def test_inputs_that_a_newer_question_has_are_taken_where_they_are() -> None:
    plain, newer = run_of("lora-8"), run_of("dora")

    assert (plain.lora_rank, plain.epochs, plain.lora_targets, plain.packed) == (16, None, "all-linear", True)
    assert (newer.method, newer.lora_rank, newer.epochs, newer.lora_targets) == ("dora", 64, 3.0, "attention")
    assert newer.adapts
    assert plain.quant_double
    assert not run_of("single-quant").quant_double
    assert not run_of("single-quant").packed


def test_an_answer_without_an_echo_reads_with_defaults() -> None:
    document = json.loads(answer("dense"))
    document["question"] = {}

    run = planned_run(document, precision="bf16", gpu=None, view="plans")

    assert (run.method, run.optimizer, run.seq_len, run.steps) == ("pretrain", "adamw", 8192, 1)


def test_a_plan_that_does_not_fit_is_nothing_to_launch() -> None:
    document = json.loads(answer("dense"))
    for plan in document["plans"]:
        if plan["precision"] == "fp16":
            plan |= {"fits": False, "layout": None}

    with pytest.raises(UsageError, match="does not fit: there is nothing to launch") as refused:
        planned_run(document, precision="fp16", gpu=None, view="plans")

    assert "bf16 on h100-sxm5-80gb" in str(refused.value.hint)
