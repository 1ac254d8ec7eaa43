"""Sizes of a layer's shard: what a rank holds of published models."""

from __future__ import annotations

import pytest

from probes.models.shapes import LLAMA_8B, LLAMA_70B, LLAMA_70B_TP8, LLAMA_405B_TP8, QWEN3_30B_EP8


def test_a_rank_holds_its_share_of_heads_and_feed_forward_and_at_least_one_key_head() -> None:
    # Llama 3.1 405B on 8 ranks: 128 query heads, 8 key and value heads, inner size 53248
    shape = LLAMA_405B_TP8
    assert (shape.local_heads, shape.local_kv_heads, shape.local_ffn) == (16, 1, 6656)
    assert shape.products == ((16384, 2304), (2048, 16384), (16384, 13312), (6656, 16384))


def test_the_matrix_parameters_of_eight_ranks_are_those_of_the_layer() -> None:
    def matrices(shape) -> int:
        return sum(k * n for k, n in shape.products)

    assert 8 * matrices(LLAMA_70B_TP8) == matrices(LLAMA_70B) == 855_638_016


def test_a_mixture_holds_its_rank_of_experts_and_the_whole_router() -> None:
    # Qwen3-30B-A3B: hidden 2048, 128 experts of 768, 32 query and 4 key heads of 128, on 8 expert parallel ranks
    shape = QWEN3_30B_EP8
    attention = 2048 * (32 + 2 * 4) * 128 + 32 * 128 * 2048
    experts = 16 * 3 * 2048 * 768

    assert shape.local_experts == 16
    assert shape.params == attention + experts + 2048 * 128 + 2 * 2048
    # 48 such layers on 8 ranks, attention and router once, with two embeddings of 151936 x 2048: 30.5 B as published
    whole = 48 * (attention + 8 * experts + 2048 * 128) + 2 * 151_936 * 2048
    assert whole == pytest.approx(30.5e9, rel=5e-3)


@pytest.mark.parametrize(
    ("shape", "name"), [(LLAMA_8B, "llama-3.1-8b/tp1"), (QWEN3_30B_EP8, "qwen3-30b-a3b/ep8")], ids=["dense", "mixture"]
)
def test_a_shard_is_named_for_its_model_and_its_split(shape, name: str) -> None:
    assert shape.name == name
