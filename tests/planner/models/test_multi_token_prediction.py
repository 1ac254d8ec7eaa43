"""Modules of multi-token prediction: one more layer, projection and output layer each."""

from __future__ import annotations

from dataclasses import replace

import pytest

from planner.models.catalogue import find_model
from planner.performance.operations import model_flop_per_token
from planner.performance.shards import filled_layers, shard_params
from planner.training.method import find_method
from planner.training.recipe import trained_mtp_layers
from tests.planner.build import layouts, recipe, shape

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
    one, shared = (replace(DEEPSEEK, mtp_layers=n, mtp_shares_weights=True).unrolled() for n in (1, 2))
    own = replace(DEEPSEEK, mtp_layers=2).unrolled()

    assert shared.params_total == pytest.approx(one.params_total, rel=1e-3)
    assert own.params_total - shared.params_total == pytest.approx(own.params_total / own.layers, rel=0.1)
    assert shared.matrix_params_active == own.matrix_params_active


@pytest.mark.parametrize(
    ("pp", "last"), [(1, 62), (4, 14), (8, 6), (16, 2)]  # 61 layers and a module, as Megatron-Bridge lays them out
)  # fmt: skip
def test_the_last_stage_has_what_the_others_leave(pp, last):
    most, found = filled_layers(62, layouts(pp=pp), 1)

    assert (most[0], found[0]) == (-(-62 // pp), last)


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
