"""Counts of parameters, against the papers."""

from __future__ import annotations

from dataclasses import replace

import pytest

from planner.models.catalogue import find_model
from planner.performance.operations import model_flop_per_token
from planner.performance.shards import filled_layers, shard_params
from planner.training.method import find_method
from planner.training.recipe import trained_mtp_layers
from tests.planner.build import gpt, layouts, recipe, shape


@pytest.mark.parametrize(
    ("name", "published"),
    [
        ("gpt-3-175b", 174.6e9),  # Brown et al. 2020, table D.1
        ("gpt-3-13b", 12.85e9),
        ("llama-2-70b", 68.98e9),
        ("llama-3.1-8b", 8.03e9),
        ("llama-3.1-70b", 70.55e9),
        ("llama-3.1-405b", 405.85e9),
    ],
)
def test_parameters_of_gpt_3_and_llama(name, published):
    assert find_model(name).params_total == pytest.approx(published, rel=0.002)


@pytest.mark.parametrize(("layers", "hidden", "heads"), [(24, 2304, 24), (96, 12288, 96)])
def test_a_gpt_has_12_l_h_squared_and_small_terms(layers, hidden, heads):
    # Narayanan et al. 2021, equation 2: P = 12 l h^2 (1 + 13 / 12h + (V + s) / 12 l h)
    model = gpt(layers, hidden, heads, vocab=51200)
    theirs = 12 * layers * hidden**2 * (1 + 13 / (12 * hidden) + 51200 / (12 * layers * hidden))

    assert model.params_total == pytest.approx(theirs, rel=1e-3)


def test_an_expert_model_activates_its_top_experts_only():
    mixtral = find_model("mixtral-8x7b")

    # arXiv 2401.04088: 47B parameters, 13B active
    assert mixtral.params_total == pytest.approx(46.7e9, rel=0.003)
    assert mixtral.params_active == pytest.approx(12.9e9, rel=0.003)
    assert mixtral.params_total - mixtral.params_active == 32 * 6 * 3 * 4096 * 14336


def test_every_second_layer_can_be_a_mixture():
    assert find_model("llama-4-maverick").moe_layers == 24
    assert find_model("deepseek-v3").moe_layers == 58
    assert find_model("llama-3.1-8b").moe_layers == 0


def test_the_share_of_layers_with_experts_is_that_of_the_mean_layer():
    # DeepSeek-V3 (arXiv 2412.19437, section 4.2): 61 layers, the first three dense
    assert find_model("deepseek-v3").moe_share == pytest.approx(58 / 61)
    assert find_model("llama-3.1-8b").moe_share == 0


DEEPSEEK = find_model("deepseek-v3")


def test_that_of_deepseek_v3_has_as_many_parameters_as_its_publisher_says():
    # "MTP Modules: Parameters: 11.5B unique parameters, excluding the shared 0.9B Embedding and 0.9B output Head"
    # (deepseek-ai/DeepSeek-V3, README_WEIGHTS.md)
    added = DEEPSEEK.unrolled().params_total - DEEPSEEK.params_total

    assert added / 1e9 == pytest.approx(11.5, abs=0.15)


def test_each_is_a_layer_an_output_layer_and_a_projection_from_twice_the_hidden_size():
    plain = shape(layers=12)
    ahead = replace(plain, mtp_layers=2).unrolled()
    layer = replace(plain, layers=13).matrix_params_active - plain.matrix_params_active
    each = layer + plain.head_params + 2 * plain.hidden**2

    assert (ahead.layers, ahead.head_ratio) == (14, 3 * plain.head_ratio)
    assert ahead.matrix_params_active - plain.matrix_params_active == pytest.approx(2 * each)
    assert model_flop_per_token(ahead, 1024) > model_flop_per_token(plain, 1024) + 6 * 2 * each
    assert ahead.unrolled() is ahead
    assert plain.unrolled() is plain


def test_a_hybrid_module_has_attention_and_a_feed_forward_and_no_scan():
    model = find_model("nemotron-3-super")
    ahead = model.unrolled()

    assert ahead.attention_layers == model.attention_layers + 2
    assert ahead.ffn_layers == model.ffn_layers + 2
    assert ahead.moe_layers == model.moe_layers + 2
    assert ahead.linear == model.linear


def test_weights_that_two_modules_share_lie_there_once():
    one_module, two_sharing = (replace(DEEPSEEK, mtp_layers=n, mtp_shares_weights=True).unrolled() for n in (1, 2))
    own = replace(DEEPSEEK, mtp_layers=2).unrolled()

    assert two_sharing.params_total == pytest.approx(one_module.params_total, rel=1e-3)
    assert own.params_total - two_sharing.params_total == pytest.approx(own.params_total / own.layers, rel=0.1)
    assert two_sharing.matrix_params_active == own.matrix_params_active


@pytest.mark.parametrize(
    ("pp", "vp", "most", "last"),
    # 61 layers and a module, as Megatron-Bridge lays them out
    [(1, 1, 62, 62), (4, 1, 16, 14), (8, 1, 8, 6), (16, 1, 4, 2), (8, 4, 8, 7), (16, 2, 4, 3), (2, 2, 32, 30)],
)
def test_the_last_chunk_has_what_the_others_leave(pp, vp, most, last):
    counts = filled_layers(62, layouts(pp=pp, vp=vp), 1)

    assert (counts[0][0], counts[1][0]) == (most, last)


def test_the_last_stage_looks_up_tokens_as_well():
    at = layouts(pp=4)
    plain, ahead = (recipe(replace(DEEPSEEK, mtp_layers=n).unrolled()) for n in (0, 1))

    more = shard_params(ahead, at).last_extra - shard_params(plain, at).last_extra
    assert more[0] == DEEPSEEK.embedding_params


@pytest.mark.parametrize(
    ("method", "stack", "modules"),
    [("pretrain", "typical", 1), ("pretrain", "tuned", 1), ("pretrain", "fsdp-compile", 0), ("sft", "tuned", 0)],
)
def test_they_are_trained_where_the_stack_has_them(method, stack, modules):
    assert trained_mtp_layers(DEEPSEEK, find_method(method), stack) == modules
