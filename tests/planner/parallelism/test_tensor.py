"""Tensor parallel sizes: those that a search tries, and a given one that Megatron-Core would refuse."""

from __future__ import annotations

from dataclasses import replace

import pytest

from planner.errors import Message, UsageError
from planner.models.catalogue import find_model
from planner.models.linear_attention import LinearAttention
from planner.parallelism.search import FixedLayout, enumerate_layouts
from planner.parallelism.tensor import check_tensor_size, tensor_sizes
from tests.planner.build import cluster, recipe, shape

H100 = cluster()


def test_no_tensor_parallel_size_splits_a_key_head_of_linear_attention():
    alone = LinearAttention(layers=2, key_heads=1, key_dim=64, value_heads=16, value_dim=64)
    few, scanning = shape(layers=2, heads=16, linear=replace(alone, key_heads=4)), shape(layers=2, linear=alone)
    no_attention = replace(few, heads=6, attention_layers=0)

    # Megatron-Core, `MambaMixer`: "ngroups must be evenly divisible by tp_size"
    sizes = [tensor_sizes(recipe(model), cluster("h100-sxm5-80gb")) for model in (few, scanning, no_attention)]
    assert sizes == [[1, 2, 4], [1], [1, 2, 4]]
    with pytest.raises(UsageError) as caught:
        check_tensor_size(few, 8)
    assert caught.value.message.key == "error.tp_linear_heads"


def test_tensor_parallel_stays_in_the_nvlink_domain_or_the_machine():
    assert tensor_sizes(recipe("llama-3.1-70b"), H100) == [1, 2, 4, 8]
    assert tensor_sizes(recipe("llama-3.1-70b"), cluster("l40s")) == [1, 2, 4, 8]  # a machine of eight over PCIe
    assert tensor_sizes(recipe("llama-2-13b"), H100) == [1, 2, 4, 8]  # 40 heads
    assert tensor_sizes(recipe("falcon-7b"), H100) == [1]  # 71 heads


def test_no_size_is_tried_that_splits_a_key_and_value_head_shared_by_the_ranks():
    # 40 query heads and 10 of keys and values: `num_query_groups` is no multiple of 4 or 8, and no divisor
    assert tensor_sizes(recipe("phi-4"), H100) == [1, 2]
    assert tensor_sizes(recipe("qwen3-235b-a22b"), H100) == [1, 2, 4, 8]  # 4 key and value heads, held twice on 8 ranks
    assert tensor_sizes(recipe("deepseek-v3"), H100) == [1, 2, 4, 8]  # latent attention
    assert tensor_sizes(recipe(shape(heads=16, kv_heads=16, ffn_hidden=4 * 1001)), H100) == [1, 2, 4]
    experts = shape(heads=16, kv_heads=16, experts=8, top_k=2, expert_ffn=2 * 1001)
    assert tensor_sizes(recipe(experts), H100) == [1, 2]


@pytest.mark.parametrize(
    ("model", "tp", "message", "able"),
    [
        ("llama-3.2-3b", 5, ("error.tp_heads", {"heads": 24}), (1, 2, 4, 8)),
        ("llama-3.2-3b", 3, ("error.tp_kv_heads", {"heads": 8}), (1, 2, 4, 8)),
        ("llama-3.2-3b", 24, ("error.tp_ffn", {"size": 8192}), (1, 2, 4, 8)),
        ("phi-4", 4, ("error.tp_kv_heads", {"heads": 10}), (1, 2, 5, 10, 20, 40)),
    ],
)
def test_a_size_that_megatron_refuses_is_wrong_usage_with_those_that_it_takes(model, tp, message, able):
    key, values = message
    with pytest.raises(UsageError) as caught:
        enumerate_layouts(recipe(model), H100, FixedLayout(tp=tp), gpus=tp)

    assert caught.value.exit_code == 2
    assert caught.value.message == Message.of(key, tp=tp, **values, model=model)
    assert caught.value.hint == Message.of("hint.one_of", values=able)
    for size in able:
        check_tensor_size(find_model(model), size)
