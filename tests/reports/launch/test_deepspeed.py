"""DeepSpeed's configuration."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from planner.errors import UsageError
from reports.launch.deepspeed import FRAMEWORK, settings
from tests.reports.launch.runs import file_of, run_of


def given(name: str, precision: str | None = None) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(file_of("deepspeed", name, precision).text)
    return document


def test_the_batch_is_micro_batch_times_accumulation_times_ranks() -> None:
    run, read = run_of("dense-zero1"), given("dense-zero1")

    assert read["train_batch_size"] == run.layout.dp * (
        read["train_micro_batch_size_per_gpu"] * read["gradient_accumulation_steps"]
    )
    assert read["zero_optimization"] == {"stage": 1}


def test_with_autotp_the_batch_is_left_to_deepspeed() -> None:
    read = given("tensor-fsdp")

    assert read["tensor_parallel"] == {"autotp_size": 8}
    assert "train_batch_size" not in read


def test_sequence_parallel_ranks_stand_beside_the_data_parallel_ones() -> None:
    read = given("context-fsdp")

    assert (read["data_parallel_size"], read["sequence_parallel_size"]) == (4, 4)


def test_deepep_gets_a_buffer_for_the_tokens_of_a_rank() -> None:
    run = run_of("moe-fsdp")
    once, each = (settings(replace(run, moe_dispatcher=name))["expert_parallel"] for name in ("deepep", "alltoall"))

    assert (once["comm_backend"], once["comm_max_tokens_per_rank"]) == ("deepep", run.layout.micro_batch * run.seq_len)
    assert each["comm_backend"] == "comm"


@pytest.mark.parametrize(
    ("name", "precision", "expected"),
    [
        ("dense", "bf16", {"bf16": {"enabled": True}, "data_types": {"grad_accum_dtype": "fp32"}}),
        ("bf16-bf16-grad", "bf16", {"bf16": {"enabled": True}, "data_types": {"grad_accum_dtype": "bf16"}}),
        ("fp16-zero", "fp16", {"fp16": {"enabled": True, "loss_scale": 0}, "data_types": {"grad_accum_dtype": "fp16"}}),
        ("autocast", "bf16", {"torch_autocast": {"enabled": True, "dtype": "bfloat16"}}),
        ("pure", "bf16",
         {"bf16": {"enabled": True, "bf16_master_weights_and_grads": True, "bf16_optimizer_states": True}}),
        ("dense", "fp32", {}),
    ],
)  # fmt: skip
def test_a_precision_is_the_types_of_its_policy(name, precision, expected):
    read = settings(run_of(name, precision))

    assert {key: read[key] for key in ("bf16", "fp16", "torch_autocast", "data_types") if key in read} == expected


def test_the_optimizers_states_go_to_the_host():
    assert given("offload-one")["zero_optimization"] == {
        "stage": 1,
        "offload_optimizer": {"device": "cpu", "pin_memory": True},
    }


def test_one_rank_shards_where_that_sends_gradients_and_parameters_to_the_host():
    assert given("offload-one-fsdp")["zero_optimization"]["stage"] == 3


def test_parameters_go_to_the_host_where_the_plan_has_them_there():
    fsdp = run_of("offload-fsdp", "bf16")

    assert settings(fsdp)["zero_optimization"]["offload_param"] == {"device": "cpu", "pin_memory": True}
    assert "offload_param" not in settings(replace(fsdp, stack="classic"))["zero_optimization"]


def test_a_pipeline_checkpoints_every_layer():
    assert given("pipeline-alone")["pipeline"] == {"activation_checkpoint_interval": 1}


@pytest.mark.parametrize(
    ("name", "precision", "why"),
    [
        ("pipeline-virtual", "bf16", "a pipeline with tensor"),
        ("pipeline", "bf16", "a pipeline with tensor"),
        ("dense", "fp8", "neither FP8 nor FP4"),
        ("offload-activations", "bf16", "the plan has none"),
    ],
)
def test_what_it_cannot_run_is_refused(name, precision, why):
    with pytest.raises(UsageError, match=why):
        file_of("deepspeed", name, precision)


def test_what_is_asked_of_a_pipeline_with_virtual_stages_is_enough():
    run = run_of("pipeline-virtual")
    alone = replace(run, layout=replace(run.layout, tp=1, cp=1, ep=1))
    hints = [next(rule for rule in FRAMEWORK.refuses if rule.applies(refused)).hint for refused in (run, alone)]

    assert run.layout.tp > 1
    assert hints[0] == "plan again with `--pp 1`"  # without a pipeline there are no virtual stages either
    assert hints[1].endswith("`--vp 1 --tp 1 --cp 1`")  # a plan without virtual stages may take tensor parallel instead
