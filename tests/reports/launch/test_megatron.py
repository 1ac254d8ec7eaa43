"""Megatron-LM's arguments."""

from __future__ import annotations

import re
import shutil
import subprocess

import pytest
from hypothesis import assume, example
from hypothesis import given as drawn
from hypothesis import strategies as st

from planner.errors import UsageError
from planner.parallelism.chunks import ENDS
from planner.performance.shards import filled_layers
from reports.launch.megatron import arguments, checkpointed, stages
from tests.planner.build import layouts
from tests.reports.launch.runs import file_of, run_of


def given(name: str, precision: str | None = None) -> dict[str, tuple[str, ...]]:
    return {flag: tuple(values) for flag, *values in arguments(run_of(name, precision))}


def test_a_layout_is_sizes_and_the_batch_of_a_step() -> None:
    run, flags = run_of("pipeline-virtual"), given("pipeline-virtual")

    assert flags["--tensor-model-parallel-size"] == ("4",)
    assert flags["--pipeline-model-parallel-size"] == ("4",)
    assert flags["--num-virtual-stages-per-pipeline-rank"] == ("5",)
    assert flags["--sequence-parallel"] == ()
    assert flags["--global-batch-size"] == (str(run.layout.dp * run.layout.micro_batch * run.layout.grad_accum),)
    assert flags["--train-iters"] == (str(run.steps),)


@pytest.mark.parametrize(
    ("name", "precision", "expected"),
    [
        ("dense", "bf16", {"--bf16": ()}),
        ("dense", "fp16", {"--fp16": (), "--initial-loss-scale": ("65536",)}),
        ("bf16-bf16-grad", "bf16", {"--bf16": (), "--grad-reduce-in-bf16": ()}),
        ("fp8", "fp8", {"--bf16": (), "--fp8-format": ("hybrid",), "--fp8-recipe": ("tensorwise",)}),
        ("fp8-delayed", "fp8", {"--bf16": (), "--fp8-format": ("hybrid",), "--fp8-recipe": ("delayed",)}),
        ("fp8-blockwise", "fp8", {"--bf16": (), "--fp8-format": ("e4m3",), "--fp8-recipe": ("blockwise",)}),
        ("mxfp8", "mxfp8", {"--bf16": (), "--fp8-format": ("e4m3",), "--fp8-recipe": ("mxfp8",)}),
        ("nvfp4", "nvfp4", {"--bf16": (), "--fp4-format": ("e2m1",), "--fp4-recipe": ("nvfp4",)}),
        ("dense", "fp32", {}),
    ],
)
def test_a_precision_is_its_recipe(name, precision, expected):
    kinds = ("--bf16", "--fp16", "--fp8", "--fp4", "--grad-", "--initial")

    assert {flag: values for flag, values in given(name, precision).items() if flag.startswith(kinds)} == expected


def test_fp32_and_tf32_are_the_environments():
    assert "export NVIDIA_TF32_OVERRIDE=0" in file_of("megatron", "dense", "fp32").text
    assert "export TORCH_ALLOW_TF32_CUBLAS_OVERRIDE=1" in file_of("megatron", "dense", "tf32").text


def test_sharding_is_the_distributed_optimizer_or_megatron_fsdp():
    assert "--use-megatron-fsdp" not in given("dense-zero1")
    assert given("dense-zero2")["--data-parallel-sharding-strategy"] == ("optim_grads",)
    assert given("dense-fsdp")["--data-parallel-sharding-strategy"] == ("optim_grads_params",)
    assert "--use-distributed-optimizer" not in given("dense-ddp")
    assert given("replicas")["--num-distributed-optimizer-instances"] == ("2",)


@pytest.mark.parametrize(
    ("name", "precision", "is_meta"),
    [
        ("dense-fsdp", "bf16", True),
        ("dense-zero2", "bf16", True),
        ("moe-fsdp", "bf16", True),
        ("dense-zero1", "bf16", False),
        ("learned-positions-fsdp", "bf16", False),  # torch.nn.Embedding would draw them anew, with deviation 1
        ("learned-positions-sft", "bf16", True),  # whose checkpoint has them
        ("tied-pipeline-fsdp", "bf16", False),  # the last stage's copy would stay 0
    ],
)
def test_a_model_is_shared_out_from_the_start_unless_it_would_start_from_other_values(name, precision, is_meta):
    flags, made = given(name, precision), file_of("megatron", name, precision)

    assert flags.get("--init-model-with-meta-device") == (() if is_meta else None)
    noted = any(note.startswith("sharding from the start") for note in made.notes)
    assert noted == ("--use-megatron-fsdp" in flags and not is_meta)


def test_a_model_that_one_gpu_has_to_make_and_cannot_hold_is_refused():
    with pytest.raises(UsageError, match="one GPU has no room for that"):
        file_of("megatron", "learned-positions-large")


def test_experts_with_biases_are_not_split():
    with pytest.raises(UsageError, match="does not split experts that have biases"):
        file_of("megatron", "moe-biases")


def test_experts_are_whole_where_their_groups_take_the_tensor_ranks():
    flags = given("moe-over-tensor")  # 8 groups of experts, and 4 data parallel ranks

    assert (flags["--tensor-model-parallel-size"], flags["--expert-model-parallel-size"]) == (("4",), ("8",))
    assert flags["--expert-tensor-parallel-size"] == ("1",)
    assert given("moe-split")["--expert-tensor-parallel-size"] == ("2",)  # 4 groups in 8 data parallel ranks


def test_layers_that_do_not_divide_are_laid_out():
    assert stages(6, 3) == "Et*2|t*2|t*2L"
    assert stages(7, 3) == "Et*3|t*2|t*2L"
    assert stages(2, 3) == "Et*1|t*1|L"
    # as NVIDIA-NeMo/Megatron-Bridge writes them for DeepSeek-V3 (`_get_deepseek_v3_pipeline_layout`)
    assert stages(61, 4, 1) == "Et*16|t*16|t*16|t*13m*1L"
    assert stages(61, 16, 1) == "E" + "t*4|" * 15 + "t*1m*1L"
    assert stages(6, 3, 2) == "Et*3|t*3|m*2L"
    assert given("pipeline-uneven")["--pipeline-model-parallel-layout"] == (stages(126, 8),)


def test_every_second_layer_is_half_of_a_stage():
    assert given("every-2")["--recompute-method"] == ("block",)
    assert checkpointed(run_of("every-2")) == 16  # of 32
    assert given("full-ckpt")["--recompute-method"] == ("uniform",)


def test_adapters_are_refused():
    with pytest.raises(UsageError, match="no adapters or frozen layers"):
        file_of("megatron", "lora")


def test_pairs_are_refused_without_a_hint_at_another_training():
    with pytest.raises(UsageError, match="has no DPO") as refused:
        file_of("megatron", "dpo")

    assert "--method" not in str(refused.value.hint)


@pytest.mark.skipif(shutil.which("bash") is None, reason="no bash")
@pytest.mark.parametrize("name", ["dense", "pipeline-uneven", "moe-shared", "offload-activations"])
def test_a_shell_reads_the_script(name):
    script = file_of("megatron", name).text
    done = subprocess.run(["bash", "-n"], input=script, text=True, capture_output=True, check=False)

    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.skipif(shutil.which("bash") is None, reason="no bash")
def test_the_script_starts_torchrun_with_the_plans_arguments_and_the_readers(tmp_path):
    torchrun = tmp_path / "torchrun"
    torchrun.write_text('#!/bin/sh\nfor word in "$@"; do echo "$word"; done\n', encoding="utf-8")
    torchrun.chmod(0o755)
    (tmp_path / "run.sh").write_text(file_of("megatron", "pipeline").text, encoding="utf-8")
    place = {"PATH": f"{tmp_path}:/usr/bin:/bin", "NODE_RANK": "3", "MASTER_ADDR": "node-0"}
    done = subprocess.run(
        ["bash", str(tmp_path / "run.sh"), "--lr", "1e-4"], env=place, text=True, capture_output=True, check=True
    )
    words = done.stdout.split()

    assert words[:8] == ["--nnodes", "8", "--nproc-per-node", "8", "--node-rank", "3", "--master-addr", "node-0"]
    assert words[words.index("pretrain_gpt.py") + 1] == "--num-layers"
    assert words[-2:] == ["--lr", "1e-4"]


def test_a_hybrid_is_not_built_as_if_every_layer_attended():
    with pytest.raises(UsageError, match="it builds a hybrid from the order of its layers"):
        file_of("megatron", "hybrid", "bf16")


@example(layers=2, modules=2, pp=2, vp=3)  # as many chunks as layers and ends: two chunks have none
@drawn(layers=st.integers(1, 130), modules=st.integers(1, 3), pp=st.integers(2, 16), vp=st.integers(1, 6))
def test_plan_and_file_lay_out_layers_and_modules_alike(layers, modules, pp, vp):
    chunks = pp * vp
    assume(pp <= layers + modules)
    assume(vp == 1 or any((layers + modules + ends) % chunks == 0 for ends in ENDS))
    most, last = filled_layers(layers + modules, layouts(pp=pp, vp=vp), modules)
    laid_out = stages(layers, chunks, modules).split("|")
    written = [sum(int(count) for count in re.findall(r"[tm]\*(\d+)", part)) for part in laid_out]

    assert sum(written) == layers + modules
    assert last[0] == sum(written[pp - 1 :: pp])
    assert most[0] == max(sum(written[stage::pp]) for stage in range(pp))
