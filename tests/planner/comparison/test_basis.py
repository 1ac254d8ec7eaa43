"""The shape that the settings of a log describe."""

from __future__ import annotations

import pytest

from planner.comparison.basis import Given, model_of_settings
from planner.comparison.conventions import counts_of, flop_per_token
from planner.hardware.catalogue import find_gpu
from planner.models.catalogue import find_model
from planner.models.shape import ModelShape
from planner.units import TERA
from tests.planner.comparison.runs import compared, log_of, recipe_of
from tests.planner.runlog.writers import LLAMA_8B, megatron_arguments, megatron_log


def settings_of(model: ModelShape, **changed: object) -> dict[str, object]:
    """Megatron-LM's arguments of a model, under their names in `megatron/training/arguments.py` (core_v0.19.0)."""
    return LLAMA_8B | {
        "num_layers": model.layers, "hidden_size": model.hidden, "num_attention_heads": model.heads,
        "num_query_groups": model.kv_heads, "kv_channels": model.head_dim,
        "ffn_hidden_size": model.ffn_hidden or model.expert_ffn, "padded_vocab_size": model.vocab,
        "swiglu": model.gated_mlp, "untie_embeddings_and_output_weights": not model.tied_embeddings,
        "num_experts": model.experts or None, "moe_router_topk": model.top_k or 2,
        "moe_ffn_hidden_size": model.expert_ffn or None,
        "moe_shared_expert_intermediate_size": model.shared_experts * model.expert_ffn or None,
        "moe_layer_freq": [0] * model.dense_layers + [1] * (model.layers - model.dense_layers) if model.experts else 1,
        "multi_latent_attention": model.kv_lora_rank is not None, "hybrid_layer_pattern": None,
    } | changed  # fmt: skip


def shape_of(settings: dict[str, object]) -> ModelShape | None:
    lines, _ = megatron_log([2.0] * 10, of=100)
    return model_of_settings(log_of(megatron_arguments(settings), lines))


@pytest.mark.parametrize("name", ["llama-3-70b", "qwen3-30b-a3b", "qwen3-235b-a22b", "gemma-2-9b", "mixtral-8x7b"])
def test_the_settings_of_a_published_model_make_that_model(name):
    model, shape = find_model(name), shape_of(settings_of(find_model(name)))

    assert shape is not None
    assert shape.params_total == pytest.approx(model.params_total, rel=1e-3)
    assert shape.matrix_params_active == pytest.approx(model.matrix_params_active, rel=1e-9)
    assert shape.head_dim * shape.heads == model.head_dim * model.heads


def test_dense_layers_and_shared_experts_are_counted():
    # DeepSeek-V3's mixture with ordinary attention
    model = find_model("deepseek-v3")
    shape = shape_of(settings_of(model, multi_latent_attention=False))

    assert shape is not None
    assert (shape.dense_layers, shape.moe_layers, shape.shared_experts, shape.expert_ffn) == (3, 58, 1, 2048)


@pytest.mark.parametrize(
    ("frequency", "with_experts"),
    [(1, 48), (2, 24), (5, 10), ([1, 1, 1, 0] * 12, 36), ("[0]*3+[1]*45", 45), (None, 48)],
    ids=str,
)
def test_the_layers_with_experts_are_every_nth_or_those_that_are_listed(frequency, with_experts):
    # `i % moe_layer_freq == 0` has experts (megatron/core/models/gpt/gpt_layer_specs.py)
    settings = settings_of(find_model("qwen3-30b-a3b"), moe_layer_freq=frequency)
    if frequency is None:
        del settings["moe_layer_freq"]  # older versions have no such setting
    shape = shape_of(settings)

    assert shape is not None
    assert shape.moe_layers == with_experts


@pytest.mark.parametrize(
    "changed",
    [{"moe_layer_freq": "every other"}, {"moe_layer_freq": [0] * 60}, {"moe_shared_expert_intermediate_size": 1000}],
    ids=str,
)
def test_experts_that_the_settings_do_not_tell_make_no_model(changed):
    assert shape_of(settings_of(find_model("qwen3-30b-a3b"), **changed)) is None


def test_a_plain_model_takes_nothing_from_settings_of_experts():
    shape = shape_of(settings_of(find_model("llama-3-8b"), moe_layer_freq=[0] * 60))

    assert shape is not None
    assert (shape.experts, shape.dense_layers, shape.moe_layers) == (0, 0, 0)


def test_the_mfu_of_a_log_without_a_model_is_that_of_its_settings():
    model = find_model("qwen3-30b-a3b")
    lines, _ = megatron_log([2.0] * 20, of=100)
    comparison = compared(log_of(megatron_arguments(settings_of(model)), lines), Given(gpu=find_gpu("h100-sxm5-80gb")))
    recipe = recipe_of(model)
    expected = flop_per_token(recipe, counts_of(recipe)[0]) * 128 * 8192 / 64 / 2.0 / TERA

    assert comparison.utilisations[0].tflops_per_gpu == pytest.approx(expected, rel=1e-6)


def test_latent_attention_asks_for_the_model_as_hybrids_do():
    lines, _ = megatron_log([2.0] * 20, of=100)
    settings = settings_of(find_model("deepseek-v3"))
    comparison = compared(log_of(megatron_arguments(settings), lines), Given(gpu=find_gpu("h100-sxm5-80gb")))

    assert comparison.basis.model is None
    assert comparison.basis.missing == ("model",)
    assert comparison.utilisations == ()
