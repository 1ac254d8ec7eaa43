import re

import pytest

from planner.training.frameworks import find_framework, load_frameworks, named_stacks
from planner.training.recipe import ACT_CKPT


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("Megatron-Bridge 26.04.01", "megatron-bridge"),
        ("NeMo/Megatron-Core (DGX Cloud recipes v25.04.02)", "nemo"),
        ("Megatron-DeepSpeed", "megatron-deepspeed"),
        ("DeepSpeed+Megatron ZeRO3 (mp=8)", "megatron-deepspeed"),
        ("Megatron-LM", "megatron"),
        ("Megatron-LM + sequence parallel", "megatron-sp"),
        ("torchtitan + torchao", "torchtitan"),
        ("llm-foundry/Composer (PyTorch FSDP)", "llm-foundry"),
        ("TensorFlow 1 (NGC)", "tensorflow"),
        ("PyTorch NGC (DeepLearningExamples)", "ngc-pytorch"),
        ("HF transformers", "hf"),
        ("LLaMA-Factory", "hf"),
        ("axolotl", "hf"),
        ("ms-swift 3.8", "hf"),
        ("FlagScale", "primus"),
        ("MaxText (JAX)", "maxtext"),
        ("levanter", "maxtext"),
        ("Colossal-AI", "colossal"),
        ("Lightning Fabric / litgpt", "litgpt"),
        ("GPT-NeoX", "gpt-neox"),
        ("PyTorch FSDP", "fsdp"),
        ("", "unknown"),
        ("Something of our own", "unknown"),
    ],
)
def test_a_framework_is_found_by_its_name(name, expected):
    assert find_framework(name).id == expected


def test_fp8_is_delayed_scaling_in_nemo_and_current_scaling_in_megatron_bridge():
    assert find_framework("NeMo 24.07").policy("fp8").scaling == "delayed"
    assert find_framework("Megatron-Bridge 25.09").policy("fp8").scaling == "tensorwise"
    assert find_framework("torchtitan").policy("fp8").id == "fp8-fsdp"


def test_megatron_core_sums_gradients_in_fp32_and_nemo_s_recipes_in_bf16():
    # Megatron-LM's --bf16 sets accumulate_allreduce_grads_in_fp32; NeMo's performance recipes grad_reduce_in_fp32=False
    assert find_framework("Megatron-Core 0.6 + TE").policy("bf16").gradient_bytes == 4
    assert find_framework("NeMo/Megatron-Core (DGX Cloud recipes v25.05.05)").policy("bf16").gradient_bytes == 2
    # DeepSpeed keeps them in the type of the weights unless `grad_accum_dtype` says otherwise
    assert find_framework("DeepSpeed 0.11").policy("bf16").gradient_bytes == 2


def test_every_row_has_a_reason_and_a_source_and_the_last_one_matches_everything():
    rows = load_frameworks()

    assert all(row.why and len(row.source) > 10 for row in rows)
    assert re.search(rows[-1].pattern, "") is not None
    assert len({row.id for row in rows}) == len(rows)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("NeMo AutoModel 25.11", "nemo-automodel"),
        ("OLMo-core", "olmo"),
        ("lightning-thunder", "thunder"),
        ("PaddleNLP (Fleet)", "paddlenlp"),
        ("PaddlePaddle (NGC)", "paddle"),
        ("FlagPerf (PyTorch)", "flagperf"),
        ("fairseq", "fairseq"),
        ("YaFSDP", "fsdp"),
        ("MindSpeed-LLM", "primus"),
        ("modded-nanogpt", "nanogpt"),
        ("TensorFlow 2 (NGC)", "tensorflow"),
    ],
)
def test_a_framework_that_no_shipped_run_uses_still_has_its_own_defaults(name, expected):
    assert find_framework(name).id == expected


def test_stacks_that_a_question_names_switch_checkpointing_on_or_off_for_all_layers():
    # `gradient_checkpointing` of Hugging Face's TrainingArguments, `enable_activation_checkpointing` of torchtune's
    # recipes and unsloth's `use_gradient_checkpointing` are switches
    assert {name: named.act_ckpts for name, named in named_stacks().items()} == dict.fromkeys(
        ("hf", "torchtune", "unsloth"), ("none", "full")
    )
    assert find_framework("Megatron-Core").act_ckpts == ACT_CKPT
