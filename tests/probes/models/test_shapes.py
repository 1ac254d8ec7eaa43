"""Shards of real layers: together they have the parameters that the models' publishers state, to the last one."""

from __future__ import annotations

from dataclasses import replace

import pytest

from probes.models.shapes import (
    LLAMA_1B,
    LLAMA_3B,
    LLAMA_8B,
    LLAMA_70B,
    LLAMA_70B_TP8,
    LLAMA_405B_TP8,
    QWEN3_30B_EP8,
    TINY_MOE,
    LayerShape,
)


@pytest.mark.parametrize(
    ("shape", "layers", "embeddings", "total"),
    [
        # config.json and the number of parameters of each model card; one embedding where it is tied to the output
        (LLAMA_1B, 16, 1, 1_235_814_400),
        (LLAMA_3B, 28, 1, 3_212_749_824),
        (LLAMA_8B, 32, 2, 8_030_261_248),
        (LLAMA_70B, 80, 2, 70_553_706_496),
    ],
    ids=lambda value: getattr(value, "model", value),
)
def test_layers_embeddings_and_the_last_norm_are_all_of_a_model(shape, layers, embeddings, total):
    assert layers * shape.params + embeddings * shape.vocab * shape.hidden + shape.hidden == total


def test_a_mixture_has_all_of_its_experts_and_its_router():
    # Qwen3-30B-A3B: 48 layers, 30 532 122 624 parameters, of which 2 x 128 a layer in norms of queries and keys
    whole = replace(QWEN3_30B_EP8, ep=1)

    assert 48 * (whole.params + 2 * 128) + 2 * 151_936 * 2048 + 2048 == 30_532_122_624


@pytest.mark.parametrize("shape", [LLAMA_70B_TP8, LLAMA_405B_TP8], ids=lambda shape: shape.name)
def test_the_shards_of_a_layer_add_up_to_it_but_for_the_norms_that_each_keeps(shape):
    norms = 2 * shape.hidden

    assert shape.tp * (shape.params - norms) == replace(shape, tp=1).params - norms


def test_expert_parallel_ranks_share_the_experts_and_keep_attention_and_router():
    whole, shard = replace(QWEN3_30B_EP8, ep=1), QWEN3_30B_EP8

    assert (whole.local_experts, shard.local_experts) == (128, 16)
    assert whole.params - shard.params == (128 - 16) * 3 * 2048 * 768


def test_more_tensor_ranks_than_key_value_heads_keep_one_each():
    shape = replace(LLAMA_70B, tp=16)

    assert (shape.local_heads, shape.local_kv_heads, shape.local_ffn) == (4, 1, 1792)
    assert shape.products == ((8192, (4 + 2) * 128), (512, 8192), (8192, 2 * 1792), (1792, 8192))


@pytest.mark.parametrize(
    ("shape", "name"),
    [(LLAMA_8B, "llama-3.1-8b/tp1"), (LLAMA_70B_TP8, "llama-3.1-70b/tp8"), (TINY_MOE, "tiny-moe/ep2")],
)
def test_a_shape_is_named_by_its_model_and_how_it_is_split(shape: LayerShape, name):
    assert shape.name == name
