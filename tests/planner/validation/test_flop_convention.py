from dataclasses import replace

import pytest

from planner.hardware.catalogue import find_gpu
from planner.models.catalogue import find_model
from planner.models.images.catalogue import image_model_named
from planner.performance.evaluation import flop_of
from planner.training.frameworks import find_framework
from planner.training.optimizers import find_optimizer
from planner.training.policies import find_policy
from planner.training.recipe import Recipe
from planner.validation.flop_convention import (
    counted_flop_per_token,
    counts_half_attention,
    counts_parameters_only,
    counts_recompute,
    peak_of_convention,
)

HARDWARE = "hardware FLOPs, recompute counted"


def recipe(model: str, seq_len: int, policy: str = "bf16") -> Recipe:
    return Recipe(
        model=find_model(model), policy=find_policy(policy), optimizer=find_optimizer("adamw"), method="pretrain",
        seq_len=seq_len, global_batch=8, stack=find_framework("").stack,
    )  # fmt: skip


def test_the_two_attention_conventions_of_llama_3_8b_at_8k_are_those_of_the_corpus():
    # published_runs.md, trap 2: 57.9 against 51.5 GFLOP per token
    full = counted_flop_per_token("6N + full (not causal-halved) attention", recipe("llama-3-8b", 8192), "none")
    half = counted_flop_per_token("causal attention halved, recompute excluded", recipe("llama-3-8b", 8192), "none")

    assert full == pytest.approx(57.9e9, rel=0.002)
    assert half == pytest.approx(51.5e9, rel=0.002)
    assert counted_flop_per_token("", recipe("llama-3-8b", 8192), "none") == half


def test_hardware_flop_are_those_of_narayanan_s_formula():
    gpt3 = recipe("gpt-3-175b", 2048)
    gpt3 = replace(gpt3, model=replace(gpt3.model, vocab=51200))
    # 96 s l h^2 (1 + s/6h + V/16lh) / s with l = 96, h = 12288, s = 2048, V = 51200 (arXiv 2104.04473, equation 3)
    expected = 96 * 96 * 12288**2 * (1 + 2048 / (6 * 12288) + 51200 / (16 * 96 * 12288))

    assert counted_flop_per_token(HARDWARE, gpt3, "full") == pytest.approx(expected, rel=1e-3)
    assert counted_flop_per_token(HARDWARE, gpt3, "none") < 0.76 * expected


def test_words_are_understood_as_the_sources_mean_them():
    assert not counts_recompute("6N + 12*L*d*s per token (full, non-causal attention); recompute excluded")
    assert counts_recompute("8N only (recompute counted)")
    assert not counts_half_attention("MFU from recipe model-FLOPs incl. full (non-causal-halved) attention")
    assert counts_half_attention("model FLOPs, causal attention halved, embedding lookup excluded")


def test_an_fp8_mfu_against_989_is_over_the_bf16_peak():
    h100 = find_gpu("h100-sxm5-80gb")

    assert peak_of_convention("vs 989 TF", recipe("llama-3-8b", 8192, "fp8"), h100) == h100.peak_flop_per_s["bf16"]
    assert peak_of_convention("", recipe("llama-3-8b", 8192, "fp8"), h100) == h100.peak_flop_per_s["fp8"]


def test_eight_n_is_four_thirds_of_the_layers_without_attention_and_output_layer():
    # Llama 3 8B: 32 layers of 4096 x (2 x 4096 + 2 x 1024) for attention and 3 x 4096 x 14336 for the feed-forward
    layers = 32 * (4096 * (2 * 4096 + 2 * 1024) + 3 * 4096 * 14336)
    training = recipe("llama-3-8b", 8192)

    assert layers == 6_979_321_856
    assert counted_flop_per_token("8N only (recompute counted)", training, "full") == pytest.approx(8 * layers)
    assert counted_flop_per_token("8N only (recompute counted)", training, "none") == pytest.approx(6 * layers)
    assert counted_flop_per_token("6N, logits excluded", training, "full") == pytest.approx(6 * layers)
    assert not counts_parameters_only("6N + attention")


def test_the_output_layer_is_not_recomputed():
    training = recipe("llama-3-8b", 8192)
    head = 6 * 4096 * 128_256
    plain, recomputed = (counted_flop_per_token(HARDWARE, training, kind) for kind in ("none", "full"))

    assert (recomputed - head) / (plain - head) == pytest.approx(4 / 3)
    assert counted_flop_per_token(HARDWARE, training, "selective") == plain
    half = counted_flop_per_token(HARDWARE, training, "every-2")  # half of the layers are run again
    assert (half - head) / (plain - head) == pytest.approx(7 / 6)


def test_an_a100_s_mfu_against_312_is_over_the_bf16_peak_in_tf32_too():
    a100 = find_gpu("a100-sxm4-80gb")

    assert peak_of_convention("MFU, peak 312", recipe("llama-3-8b", 8192, "tf32"), a100) == 312e12
    assert peak_of_convention("MFU", recipe("llama-3-8b", 8192, "tf32"), a100) == 156e12


def test_fine_tuning_counts_what_its_method_needs_as_a_plan_does():
    """Counted as 6 FLOP per weight, the MFU of a LoRA run came out half as high again as in a plan."""
    whole = recipe("llama-3-8b", 2048)
    lora = replace(whole, method="lora")
    ratio = {text: counted_flop_per_token(text, lora, "full") / counted_flop_per_token(text, whole, "full")
             for text in ("", HARDWARE)}  # fmt: skip

    assert counted_flop_per_token("", lora, "none") == flop_of(lora)
    assert ratio[""] == pytest.approx(2 / 3, rel=0.03)
    assert ratio[HARDWARE] == pytest.approx(3 / 4, rel=0.03)  # three forward passes in place of four


def test_a_vision_model_counts_the_flop_of_its_network():
    """Its shape without tokens counted a thousandth of them."""
    resnet = replace(recipe("llama-3-8b", 1), model=image_model_named("resnet-50"))

    assert counted_flop_per_token("", resnet, "none") == flop_of(resnet)
    assert counted_flop_per_token(HARDWARE, resnet, "none") == flop_of(resnet)
