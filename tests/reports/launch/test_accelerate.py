"""Accelerate's file."""

from __future__ import annotations

from importlib import import_module

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


def test_adapters_have_no_16_bit_weights_beside_masters():
    # PEFT keeps adapters in FP32 and the frozen weights in their own type, whatever the policy of the plan says
    adapters, whole = file_of("accelerate", "lora-masters"), file_of("accelerate", "dense-zero2")

    assert run_of("lora-masters").policy == run_of("dense-zero2").policy
    assert any("beside FP32 masters" in note for note in whole.notes)
    assert not any("beside FP32 masters" in note for note in adapters.notes)


def test_four_bit_weights_are_sharded_by_fsdp_1():
    # PEFT's and bitsandbytes' guides to FSDP-QLoRA. accelerate 1.15 leaves bytes out of FSDP2's shards
    # (fsdp2_prepare_model), and transformers 5.24 loads 4-bit weights whole on each GPU unless told a device.
    read, made = yaml_of("accelerate", "qlora-8"), file_of("accelerate", "qlora-8")

    assert read["fsdp_config"] == {
        "fsdp_version": 1,
        "fsdp_sharding_strategy": "FULL_SHARD",
        "fsdp_auto_wrap_policy": "TRANSFORMER_BASED_WRAP",
        "fsdp_use_orig_params": False,
        "fsdp_sync_module_states": True,
        "fsdp_cpu_ram_efficient_loading": True,
        "fsdp_activation_checkpointing": True,
        "fsdp_offload_params": False,
        "fsdp_state_dict_type": "SHARDED_STATE_DICT",
    }
    assert "bnb_4bit_compute_dtype=torch.bfloat16, bnb_4bit_quant_storage=torch.bfloat16" in made.text
    assert 'device_map="cpu"' in made.text
    assert "autocast_adapter_dtype=False" in made.text
    assert sum(note.startswith(("loading of", "the type of", "what FSDP wraps")) for note in made.notes) == 3


def test_four_bit_weights_kept_between_the_passes_lie_in_the_type_of_each_precision():
    half, single = file_of("accelerate", "qlora-fits-one", "fp16"), file_of("accelerate", "qlora-fits-one", "tf32")

    assert yaml_of("accelerate", "qlora-fits-one")["fsdp_config"]["fsdp_sharding_strategy"] == "SHARD_GRAD_OP"
    assert "bnb_4bit_quant_storage=torch.float16" in half.text
    assert "bnb_4bit_quant_storage=torch.float32" in single.text
    assert "bnb_4bit_use_double_quant=False" in single.text


def test_four_bit_weights_on_one_gpu_are_loaded_there():
    made = file_of("accelerate", "single-quant")

    assert "bnb_4bit_use_double_quant=False, bnb_4bit_compute_dtype=torch.bfloat16\n" in made.text
    assert "device_map" not in made.text
    assert not any(note.startswith("loading of") for note in made.notes)


def test_tensor_parallelism_is_refused_as_long_as_transformers_lacks_what_accelerate_imports():
    # `Accelerator._prepare_tp` of accelerate 1.15.0, of a model that transformers loaded in shards
    pytest.importorskip("transformers", minversion="5.10")

    assert not hasattr(import_module("transformers.integrations.tensor_parallel"), "ReplicateParallel")


def test_parallel_sizes_multiply_to_the_gpus():
    for name in ("context-fsdp", "replicas"):
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


def test_paged_states_are_those_of_shards_that_are_plain_tensors():
    # bitsandbytes makes a paged state as large as what it is handed (get_state_buffer): a flat shard of FSDP1 or of
    # DeepSpeed, but the whole weight of FSDP2
    assert 'optim="paged_adamw_8bit"' in file_of("accelerate", "qlora-paged").text
    assert 'optim="paged_adamw_8bit"' in file_of("accelerate", "paged-zero1").text
    assert 'optim="adamw_torch_8bit"' in file_of("accelerate", "adamw-8bit").text  # what the refusal says instead


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
        ("dense", "bf16", "its tensor parallelism"),
        ("tensor-fsdp", "bf16", "its tensor parallelism under FSDP needs a part of transformers"),
        ("muon", "bf16", "without FSDP its context parallelism"),
        ("moe-fsdp", "bf16", "its expert parallelism"),
        ("dense-fsdp", "fp16", "no loss scaling"),
        ("replicas-zero1", "bf16", "shared by all"),
        ("paged-fsdp", "bf16", "FSDP2 cannot shard optimizer states that are paged"),
        ("qlora-context", "bf16", "FSDP1, which shards its 4-bit weights, runs without context"),
        ("qlora-checkpoints", "bf16", "does not move activation checkpoints"),
    ],
)
def test_what_it_cannot_run_is_refused(name, precision, why):
    with pytest.raises(UsageError, match=why):
        file_of("accelerate", name, precision)
