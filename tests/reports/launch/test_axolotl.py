"""axolotl's file."""

from __future__ import annotations

import pytest

from planner.errors import UsageError
from reports.launch import FRAMEWORKS, find_framework
from reports.launch.axolotl import settings
from reports.launch.framework import render
from tests.reports.launch.runs import file_of, run_of, yaml_of


def test_qlora_is_an_adapter_on_four_bits() -> None:
    read = yaml_of("axolotl", "qlora")

    assert (read["adapter"], read["load_in_4bit"], read["lora_r"]) == ("qlora", True, 16)
    assert read["base_model"] == "meta-llama/Llama-3.1-70B"
    assert read["optimizer"] == "paged_adamw_8bit"
    assert read["bnb_config_kwargs"] == {"bnb_4bit_use_double_quant": True}
    assert read["max_steps"] == run_of("qlora").steps


def test_inputs_of_a_newer_question_are_taken() -> None:
    dora, dpo, single = yaml_of("axolotl", "dora"), yaml_of("axolotl", "dpo"), yaml_of("axolotl", "single-quant")

    assert (dora["adapter"], dora["peft_use_dora"], dora["lora_r"], dora["num_epochs"]) == ("lora", True, 64, 3.0)
    assert "max_steps" not in dora
    assert dpo["rl"] == "dpo"
    assert dpo["micro_batch_size"] * 2 == run_of("dpo").layout.micro_batch
    assert single["bnb_config_kwargs"] == {"bnb_4bit_use_double_quant": False}
    assert dora["lora_target_modules"] == ["q_proj", "k_proj", "v_proj", "o_proj"]
    assert single["sample_packing"] is False
    assert dora["sample_packing"] is True


def test_training_from_scratch_starts_from_weights_that_are_drawn_and_fine_tuning_from_a_checkpoint() -> None:
    # axolotl 0.19.0 loads the checkpoint of `base_model` unless `reinit_weights` (`_build_model`)
    scratch, tuned, adapted = (file_of("axolotl", name) for name in ("dense-fsdp", "sft", "qlora"))

    assert yaml_of("axolotl", "dense-fsdp")["reinit_weights"] is True
    assert any("trains from scratch" in note for note in scratch.notes)
    for made in (tuned, adapted):
        assert "reinit_weights" not in made.text


def test_a_model_of_nobodys_is_a_folder() -> None:
    made = file_of("axolotl", "own-shape")

    assert settings(run_of("own-shape"))["base_model"].startswith("./")
    assert any("the repository of the model" in note for note in made.notes)


def test_stages_are_deepspeeds_first_and_fsdps_beyond() -> None:
    assert yaml_of("axolotl", "sft-zero1")["deepspeed"]["zero_optimization"] == {"stage": 1}
    read = yaml_of("axolotl", "dense-zero2")
    assert (read["fsdp_version"], read["fsdp_config"]["reshard_after_forward"]) == (2, False)
    assert yaml_of("axolotl", "replicas")["dp_replicate_size"] == 2


def test_sgd_has_the_momentum_of_the_plan() -> None:
    read = yaml_of("axolotl", "sgd-fsdp")

    assert (read["optimizer"], read["optim_args"]) == ("sgd", "momentum=0.9")


def test_the_chunked_loss_is_its_own_and_of_pairs_ligers() -> None:
    assert yaml_of("axolotl", "chunked")["chunked_cross_entropy"] is True
    assert yaml_of("axolotl", "dpo-packed")["dpo_use_liger_kernel"] is True
    assert "chunked_cross_entropy" not in yaml_of("axolotl", "sft")
    assert any("never packed" in note for note in file_of("axolotl", "dpo-packed").notes)


def test_the_8_bit_optimizer_is_one_that_fsdp_can_shard() -> None:
    assert yaml_of("axolotl", "adamw-8bit")["optimizer"] == "ao_adamw_8bit"


def test_adapters_have_no_16_bit_weights_beside_masters() -> None:
    noted = [any("kept and reduced in 16 bits" in note for note in file_of("axolotl", name).notes)
            for name in ("dense-zero2", "lora-masters")]  # fmt: skip

    assert noted == [True, False]


def test_four_bit_weights_that_one_gpu_holds_are_sharded_once_they_are_loaded() -> None:
    # axolotl 0.19.0 stores them in BF16 by default and refuses cpu_ram_efficient_loading with FSDP2 and 4 bits
    made, read = file_of("axolotl", "qlora-fits-one"), yaml_of("axolotl", "qlora-fits-one")

    assert read["fsdp_version"] == 2
    assert "cpu_ram_efficient_loading" not in read["fsdp_config"]
    assert any(note.startswith("loading of the 4-bit weights: axolotl stores them in BF16") for note in made.notes)


def test_four_bit_weights_that_no_gpu_holds_whole_go_to_accelerate() -> None:
    with pytest.raises(UsageError) as refused:
        render(find_framework("axolotl"), run_of("qlora-8"), FRAMEWORKS)

    assert "`--gpu` that has more memory" in str(refused.value.hint)
    assert "`--launch accelerate`" in str(refused.value.hint)


def test_some_checkpoints_become_all_and_it_is_said() -> None:
    made = file_of("axolotl", "every-4-fsdp")

    assert "gradient_checkpointing: true" in made.text
    assert any("selective activation checkpointing" in note for note in made.notes)


@pytest.mark.parametrize(
    ("name", "precision", "why"),
    [
        ("pipeline", "bf16", "no pipeline parallelism"),
        ("tensor-fsdp", "bf16", "AutoTP"),
        ("moe-fsdp", "bf16", "plug-in"),
        ("lamb", "bf16", "only decoder models|tensor"),
        ("freeze", "bf16", "freezes layers by their names"),
        ("in-backward", "bf16", "inside the backward pass"),
        ("dpo-qlora", "bf16", "4-bit weights with pairs"),
        ("vit", "bf16", "only decoder models"),
        ("lora-8", "fp8", "training of all weights"),
        ("mxfp8-fsdp", "mxfp8", "no other recipe"),
        ("paged-fsdp", "bf16", "FSDP2 cannot shard optimizer states that are paged"),
        ("qlora-paged", "bf16", "FSDP2 cannot shard optimizer states that are paged"),
        ("qlora-8", "bf16", "loads all 4-bit weights on every GPU"),
    ],
)
def test_what_it_cannot_run_is_refused(name, precision, why):
    with pytest.raises(UsageError, match=why):
        file_of("axolotl", name, precision)
