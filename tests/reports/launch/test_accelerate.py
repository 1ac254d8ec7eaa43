"""Accelerate's file."""

from __future__ import annotations

import pytest

from planner.errors import UsageError
from reports.launch.accelerate import settings
from tests.reports.launch.runs import file_of, run_of, yaml_of


@pytest.mark.parametrize(
    ("name", "kind"),
    [("dense-fsdp", "FSDP"), ("dense-zero2", "FSDP"), ("dense-zero1", "DEEPSPEED"), ("dense-ddp", "MULTI_GPU"),
     ("one-gpu", "NO"), ("offload-one", "DEEPSPEED"),
     ("offload-one-fsdp", "FSDP")],
)  # fmt: skip
def test_the_stage_decides_who_distributes(name, kind):
    assert yaml_of("accelerate", name)["distributed_type"] == kind


def test_stage_2_keeps_parameters_between_the_passes():
    assert yaml_of("accelerate", "dense-fsdp")["fsdp_config"]["fsdp_reshard_after_forward"] is True
    assert yaml_of("accelerate", "dense-zero2")["fsdp_config"]["fsdp_reshard_after_forward"] is False


def test_parallel_sizes_multiply_to_the_gpus():
    for name in ("tensor-fsdp", "context-fsdp", "replicas"):
        run = run_of(name)
        sizes = settings(run)["parallelism_config"]
        product = 1
        for axis in ("dp_replicate", "dp_shard", "tp", "cp", "sp"):
            product *= sizes[f"parallelism_config_{axis}_size"]

        assert product == run.gpus


@pytest.mark.parametrize(
    ("name", "precision", "expected"),
    [
        ("fp8-fsdp", "fp8", {"fp8_backend": "AO", "fp8_enable_fsdp_float8_all_gather": True}),
        ("fp8-delayed-fsdp", "fp8", {"fp8_backend": "TE", "fp8_format": "HYBRID", "fp8_amax_history_len": 1024,
                                     "fp8_amax_compute_algo": "max"}),
        ("mxfp8-zero3", "mxfp8", {"fp8_backend": "TE", "fp8_format": "E4M3", "fp8_use_mxfp8_block_scaling": True}),
    ],
)  # fmt: skip
def test_fp8_has_a_backend_and_a_recipe(name, precision, expected):
    read = yaml_of("accelerate", name, precision)

    assert (read["mixed_precision"], read["fp8_config"]) == ("fp8", expected)


def test_what_the_script_has_to_be_given_is_a_comment():
    run, text = run_of("dense-fsdp"), file_of("accelerate", "dense-fsdp").text

    assert f"per_device_train_batch_size={run.layout.micro_batch}, " in text
    assert f"max_steps={run.steps}" in text


@pytest.mark.parametrize(
    ("name", "optimizer"),
    [
        ("dense-fsdp", 'optim="adamw_torch_fused"'),
        ("adamw-8bit", 'optim="adamw_torch_8bit"'),
        ("qlora", 'optim="paged_adamw_8bit"'),
        ("resnet", 'optim="sgd", optim_args="momentum=0.9"'),
    ],
)
def test_the_optimizer_is_an_argument_of_the_script(name, optimizer):
    assert optimizer in file_of("accelerate", name).text


def test_an_optimizer_that_is_no_argument_is_said():
    made = file_of("accelerate", "muon-fsdp")

    assert "optim=" not in made.text
    assert any(note.startswith("the optimizer, which") for note in made.notes)


def test_images_pairs_and_padding_are_said():
    vit, dpo, padded, packed = (file_of("accelerate", name) for name in ("vit", "dpo", "sft-padded", "chunked"))

    assert "112,305 steps of 1,024 images of 384 x 384 pixels" in vit.text
    assert any("channels_last" in note for note in vit.notes)
    assert f"per_device_train_batch_size={run_of('dpo').layout.micro_batch // 2}, " in dpo.text
    assert any(note.startswith("padding") for note in padded.notes)
    assert any(note.startswith("packing") and "packing=True" in note for note in packed.notes)
    assert not any(note.startswith(("padding", "packing")) for note in vit.notes)
    assert "use_liger_kernel=True" in packed.text


@pytest.mark.parametrize(
    ("name", "precision", "why"),
    [
        ("in-backward-zero1", "bf16", "inside the backward pass"),
        ("pipeline", "bf16", "its pipelines are those"),
        ("dense", "bf16", "without FSDP"),
        ("moe-fsdp", "bf16", "its expert parallelism"),
        ("dense-fsdp", "fp16", "no loss scaling"),
        ("replicas-zero1", "bf16", "shared by all"),
    ],
)
def test_what_it_cannot_run_is_refused(name, precision, why):
    with pytest.raises(UsageError, match=why):
        file_of("accelerate", name, precision)
