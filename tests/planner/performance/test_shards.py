"""Parameters per GPU: nothing is lost and nothing counted twice."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.parallelism.layout import Layouts
from planner.performance.shards import shard_params, stage_layers, trained_share
from tests.planner.build import gpt, layout, layouts, layouts_of, recipe, shapes


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
    found = stage_layers(layers, layouts(pp=pp, vp=vp))

    assert [float(one[0]) for one in found] == [most, last]


@pytest.mark.parametrize(
    ("layers", "pp", "head_layers", "most", "last"),
    [
        # Llama-1.34B of the sweep: 131 072 x 2048 over 50.3M a layer makes the output layer worth 5.3 layers
        (16, 2, 5.33, 11, 5),
        (16, 4, 5.33, 6, 0),
        (16, 8, 5.33, 3, 0),
        (80, 8, 0.4, 10, 10),  # not worth an uneven split
        (32, 2, 1.0, 16, 16),  # 17 and 15 would save half a layer: nobody does that
    ],
)
def test_an_output_layer_worth_several_layers_leaves_the_last_stage_fewer(layers, pp, head_layers, most, last):
    stages = stage_layers(layers, layouts(pp=pp), head_layers)

    assert [float(stage[0]) for stage in stages] == [most, last]


@pytest.mark.parametrize(("stack", "last"), [("eager", 5), ("fsdp-compile", 5), ("tuned", 8), ("classic", 8)])
def test_only_pytorch_s_pipelines_are_cut_by_work(stack, last):
    small = replace(gpt(16, 2048, 32, vocab=131_072), ffn_hidden=8192)

    assert float(shard_params(recipe(small, stack=stack), layouts(pp=2)).layers_last[0]) == last


@given(layers=st.integers(1, 130), pp=st.integers(1, 64))
def test_the_stages_of_a_plain_pipeline_hold_all_layers(layers, pp):
    pp = min(pp, layers)
    most, last = (int(one[0]) for one in stage_layers(layers, layouts(pp=pp)))
    remainder = layers % pp

    assert most * remainder + last * (pp - remainder) == layers or remainder == 0
    assert most - last == (1 if remainder else 0)


@given(st.data())
def test_all_ranks_together_hold_every_parameter_once(data):
    model = data.draw(shapes())
    where = replace(data.draw(layouts_of(model)), pp=1, vp=1)
    shards = shard_params(recipe(model), Layouts.of(where))
    dense, expert = float(shards.dense(last=False)[0]), float(shards.expert(last=False)[0])

    vectors = model.vector_params
    # norms and biases are copied on every tensor rank, all else is split
    matrices = (dense - vectors) * where.tp
    experts = expert * where.tp * where.cp * where.dp / (float(shards.expert_ranks[0]) * where.replicas)
    assert matrices + vectors + experts == pytest.approx(model.params_total, rel=1e-9)
    assert float(shards.dense_ranks[0]) * where.replicas == where.dp * where.cp


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
    full, lora = (trained_share(recipe("llama-3.1-8b", method=method)) for method in ("sft", "lora"))

    # rank 16 on all linear layers of an 8B: 42M of 8.03B
    assert full == 1
    assert lora == pytest.approx(41.9e6 / 8.03e9, rel=0.01)
