"""torchtitan's tables."""

from __future__ import annotations

import tomllib
from dataclasses import replace

import pytest

from planner.errors import UsageError
from reports.launch import find_framework
from reports.launch.framework import render
from reports.launch.torchtitan import settings
from tests.reports.launch.runs import file_of, run_of


def test_degrees_multiply_to_the_gpus() -> None:
    for name in ("dense-fsdp", "dense-zero2", "dense-ddp", "tensor-fsdp", "replicas"):
        run = run_of(name, "bf16")
        degrees = settings(run)["parallelism"]
        shared = degrees["data_parallel_replicate_degree"] * degrees["data_parallel_shard_degree"]

        assert shared * degrees["tensor_parallel_degree"] * degrees["context_parallel_degree"] == run.gpus


def test_experts_are_whole_where_their_groups_take_the_tensor_ranks() -> None:
    degrees = settings(run_of("moe-over-tensor-fsdp"))["parallelism"]

    assert (degrees["tensor_parallel_degree"], degrees["expert_parallel_degree"]) == (2, 16)  # on 16 GPUs
    assert degrees["expert_tensor_parallel_degree"] == 1


def test_model_and_size_are_torchtitans() -> None:
    model = tomllib.loads(file_of("torchtitan", "dense-fsdp").text)["model"]

    assert (model["name"], model["flavor"], model["converters"]) == ("llama3", "8B", [])


def test_the_pipeline_cuts_a_rank_s_batch_into_the_plans_micro_batches() -> None:
    run = run_of("titan-pipeline")
    tables = settings(run)

    assert tables["training"]["local_batch_size"] == run.layout.micro_batch * run.layout.grad_accum
    assert tables["parallelism"]["pipeline_parallel_microbatch_size"] == run.layout.micro_batch
    assert tables["parallelism"]["pipeline_parallel_layers_per_stage"] == 20  # 80 layers on 4 stages


@pytest.mark.parametrize(
    ("name", "converter", "table"),
    [
        ("fp8-fsdp", "quantize.linear.float8", {
            "enable_fsdp_float8_all_gather": True, "precompute_float8_dynamic_scale_for_fsdp": True,
            "filter_fqns": ["output"],
        }),
        ("fp8-fsdp-rowwise", "quantize.linear.float8", {"recipe_name": "rowwise", "filter_fqns": ["output"]}),
        ("mxfp8-fsdp", "quantize.linear.mx", {"recipe_name": "mxfp8_cublas", "filter_fqns": ["output"]}),
    ],
)  # fmt: skip
def test_fp8_is_a_converter_and_its_table(name, converter, table):
    read = tomllib.loads(file_of("torchtitan", name).text)

    assert read["model"]["converters"] == [converter]
    _, kind, recipe = converter.split(".")
    assert read["quantize"][kind][recipe] == table


@pytest.mark.parametrize(
    ("model", "dispatcher", "backend", "told"),
    [
        ("qwen3-30b-a3b", "alltoall", "standard", False),
        ("qwen3-30b-a3b", "deepep", "standard", True),  # torchtitan has it for two families only
        ("deepseek-v3", "deepep", "deepep", False),
        ("deepseek-v3", "alltoall", "standard", False),
    ],
)
def test_tokens_go_through_deepep_where_torchtitan_has_it(model, dispatcher, backend, told):
    run = replace(run_of("moe-fsdp"), model=model, moe_dispatcher=dispatcher)

    assert settings(run)["parallelism"]["expert_parallel_comm_backend"] == backend
    assert any(note.startswith("DeepEP") for note in render(find_framework("torchtitan"), run).notes) == told


def test_checkpointing_is_full_by_operation_or_every_nth_layer():
    assert settings(run_of("full-ckpt"))["activation_checkpoint"] == {"mode": "full"}
    assert settings(run_of("every-4-fsdp"))["activation_checkpoint"] == {
        "mode": "selective",
        "selective_ac_option": "4",
    }


@pytest.mark.parametrize(
    ("name", "precision", "why"),
    [
        ("dense-zero1", "bf16", "no ZeRO stage 1"),
        ("tensor-ddp", "bf16", "no parallelism other than data parallelism"),
        ("offload-one-fsdp", "bf16", "needs several ranks"),
        ("dense-fsdp", "fp16", "no loss scaling"),
        ("muon-fsdp", "bf16", "only AdamW"),
        ("own-shape", "bf16", "does not include the model"),
        ("pipeline-qwen", "bf16", "no pipeline|no ZeRO stage 1"),
        ("fp8-delayed-fsdp", "fp8", "no other recipe"),
        ("lora-8", "bf16", "no adapters"),
    ],
)
def test_what_it_cannot_run_is_refused(name, precision, why):
    with pytest.raises(UsageError, match=why):
        file_of("torchtitan", name, precision)
