"""Parameters per GPU: nothing is lost and nothing counted twice."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.parallelism.layout import Layouts
from planner.performance.operations import count_work
from planner.performance.shards import copied_per_layer, shard_params, stage_layers, trained_share
from tests.planner.build import gpt, layout, layouts, layouts_of, recipe, shape, shapes


@pytest.mark.parametrize(
    ("layers", "pp", "vp", "most", "last"),
    [
        (80, 1, 1, 80, 80),
        (80, 8, 1, 10, 10),
        (80, 7, 1, 12, 11),  # 80 = 3 x 12 + 4 x 11: the rest goes to the earlier stages
        (126, 16, 8, 8, 7),  # Llama 3.1 405B: two layers short of even, the ends count as layers
        (96, 8, 3, 12, 12),
    ],
)
def test_stages_are_as_even_as_they_can_be(layers, pp, vp, most, last):
    counts = stage_layers(layers, layouts(pp=pp, vp=vp))

    assert [float(count[0]) for count in counts] == [most, last]


@pytest.mark.parametrize(
    ("layers", "head_layers", "pp", "most", "last"),
    [
        (16, 4.0, 1, 16, 16),
        (16, 4.0, 2, 11, 5),  # 20 layers' worth: a stage takes layers until their sum exceeds 10
        (16, 4.0, 4, 6, 0),  # 5, 10 and 15: 6, 5 and 5 layers, then the output layer alone
        (32, 2.2, 8, 5, 2),  # 4.275 each: 5, 4, 4, 5, 4, 4, 4 and 2
        (32, 2.2, 32, 2, 0),
    ],
)
def test_stages_cut_by_cost_count_the_output_layer(layers, head_layers, pp, most, last):
    # huggingface/nanotron, `models/base.py`, `build_model`: a stage ends once the cumulated cost exceeds its share
    counts = stage_layers(layers, layouts(pp=pp), head_layers)

    assert [float(count[0]) for count in counts] == [most, last]


@pytest.mark.parametrize(("balances", "layers"), [(False, 16), (True, 18)])
def test_a_stack_that_balances_stages_gives_the_first_one_more_layers(balances, layers):
    # 32 layers of 4 x 4096^2 + 3 x 4096 x 14336 and an output layer of 131,072 x 4096, 2.2 layers, on two stages
    model = shape(layers=32, hidden=4096, heads=32, kv_heads=32, head_dim=128, ffn_hidden=14336, vocab=131_072)
    shards = shard_params(recipe(model, balances_stages=balances), layouts(pp=2))

    assert float(shards.layers_most[0]) == layers


@given(layers=st.integers(1, 130), pp=st.integers(1, 64))
def test_the_stages_of_a_plain_pipeline_hold_all_layers(layers, pp):
    pp = min(pp, layers)
    most, last = (int(count[0]) for count in stage_layers(layers, layouts(pp=pp)))
    remainder = layers % pp

    assert most * remainder + last * (pp - remainder) == layers or remainder == 0
    assert most - last == (1 if remainder else 0)


@given(st.data())
def test_all_ranks_together_hold_every_parameter_once(data):
    model = data.draw(shapes())
    where = replace(data.draw(layouts_of(model)), pp=1, vp=1)
    shards = shard_params(recipe(model), Layouts.of(where))
    dense, expert = float(shards.dense(last=False)[0]), float(np.ravel(shards.expert(last=False))[0])

    copied = model.held_share * float(copied_per_layer(model, Layouts.of(where).tp)[0]) * model.layers
    vectors = model.held_share * model.vector_params
    # norms, biases and a few matrices are copied on every tensor rank, all else is split
    matrices = (dense - vectors - copied) * where.tp
    experts = expert * where.tp * where.cp * where.dp / (float(shards.expert_ranks[0]) * where.replicas)
    assert matrices + vectors + experts == pytest.approx(model.params_total, rel=1e-9)
    assert float(shards.dense_ranks[0]) * where.replicas == where.dp * where.cp


@pytest.mark.parametrize(
    ("model", "tp", "copied"),
    [
        ("llama-3-70b", 8, 0),  # 8 key and value heads: one for each rank
        ("llama-3-70b", 16, 2 * 8192 * 128 - 2 * 8192 * 1024 / 16),  # two ranks hold the same one
        # DeepSeek-V3: both projections down to the latent states in 61 layers, the router in 58
        ("deepseek-v3", 8, 7 / 8 * (7168 * (1536 + 512 + 64) + 58 / 61 * 7168 * 256)),
        ("mixtral-8x7b", 1, 0),
    ],
)
def test_tensor_parallel_ranks_copy_what_their_heads_share(model, tp, copied):
    whole, split = (recipe(model).model, layouts(tp=tp).tp)

    assert float(copied_per_layer(whole, split)[0]) == pytest.approx(copied)


@pytest.mark.parametrize(("model", "tp"), [("llama-3-70b", 16), ("qwen3-30b-a3b", 8)])
def test_a_gpu_holds_the_weights_that_it_multiplies_with(model, tp):
    training, at = recipe(model), layouts(tp=tp)
    work = count_work(training, at)
    products = [op for op in (work.moe_layer or work.dense_layer) if not op.grouped]
    multiplied = sum(float(np.ravel(op.n * op.k * op.mean_count)[0]) for op in products)

    vectors = training.model.vector_params / training.model.layers
    assert float(shard_params(training, at).dense_per_layer[0]) - vectors == pytest.approx(multiplied)


@pytest.mark.parametrize("tied", [True, False])
def test_a_pipeline_keeps_the_embedding_first_and_the_output_layer_last(tied):
    model = replace(gpt(8, 1024, 16, vocab=50_000), tied_embeddings=tied)
    alone, piped = (shard_params(recipe(model), layouts(pp=pp)) for pp in (1, 4))

    table = 50_000 * 1024
    assert float(alone.first_extra[0]) == table * (1 if tied else 2)
    # a tied table exists on both ends of a pipeline
    assert float(piped.first_extra[0]) == float(piped.last_extra[0]) == table
    assert float(piped.dense(last=True)[0]) - float(piped.last_extra[0]) == pytest.approx(model.layers / 4 * (
        model.layer_params_dense + model.vector_params / model.layers))  # fmt: skip


def test_experts_are_spread_over_their_ranks():
    shards = shard_params(recipe("deepseek-v3"), Layouts.of(layout(tp=1, dp=64, ep=32)))

    # 58 of 61 layers of 256 experts of 3 x 7168 x 2048, 8 of them on this GPU
    assert float(shards.expert(last=False)[0]) == pytest.approx(58 * 8 * 3 * 7168 * 2048)
    assert float(shards.expert_ranks[0]) == 2


def test_lora_trains_less_than_one_percent():
    full, lora = (trained_share(recipe("llama-3.1-8b", method=method, stack="eager")) for method in ("sft", "lora"))

    # rank 16 on all linear layers of an 8B: 42M of 8.03B
    assert full == 1
    assert lora == pytest.approx(41.9e6 / 8.03e9, rel=0.01)


def test_a_model_without_routed_experts_has_none_to_shard():
    dense, experts = (shard_params(recipe(model), layouts(dp=8)) for model in ("llama-3.1-70b", "deepseek-v3"))

    assert dense.expert(last=False) == dense.expert(last=True) == 0.0
    assert dense.trained(last=False) == dense.dense(last=False) * dense.dense_share
    assert experts.expert(last=False) > 0.0
