"""Mixtures of experts in a `config.json`: how many there are, which a token may see, and which layers have them."""

from __future__ import annotations

import pytest

from planner.errors import InputFileError
from planner.models.huggingface_json import ConfigJson
from planner.models.huggingface_mixtures import (
    ernie,
    experts_of,
    first_dense,
    granite_moe_shared,
    groups_of,
    llama4,
    qwen_moe,
)

GROUPS = {"n_group": 8, "topk_group": 4, "topk_method": "noaux_tc"}
ERNIE = {
    "hidden_size": 512, "num_hidden_layers": 4, "num_attention_heads": 8, "intermediate_size": 1024, "vocab_size": 5000,
    "moe_num_experts": 8, "moe_k": 2, "moe_intermediate_size": 256, "moe_num_shared_experts": 1,
    "moe_layer_start_index": 1,
}  # fmt: skip


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"n_group": 7}, "c.json: n_group: expected a divisor of n_routed_experts (256), found `7`"),
        ({"topk_group": 9}, "c.json: topk_group: expected at most n_group (8), found `9`"),
    ],
)
def test_groups_that_cannot_be_are_refused(change, message):
    with pytest.raises(InputFileError) as caught:
        groups_of(ConfigJson("c.json", GROUPS | change), 256)

    assert caught.value.message == message


@pytest.mark.parametrize("change", [{"n_group": 1}, {"topk_group": 8}, {"topk_method": "greedy"}])
def test_groups_that_limit_nothing_are_none(change):
    assert groups_of(ConfigJson("c.json", GROUPS), 256) == {"expert_groups": 8, "token_groups": 4}
    assert groups_of(ConfigJson("c.json", GROUPS | change), 256) == {}


def test_a_token_has_no_more_experts_than_there_are():
    with pytest.raises(InputFileError, match=r"moe_k: expected at most moe_num_experts \(8\), found `9`"):
        experts_of(
            ConfigJson("c.json", ERNIE | {"moe_k": 9}), ("moe_num_experts",), "moe_intermediate_size", ("moe_k",)
        )


QWEN = ERNIE | {
    "num_experts": 8, "num_experts_per_tok": 2, "decoder_sparse_step": 2, "shared_expert_intermediate_size": 0,
}  # fmt: skip
SCOUT = ERNIE | {"num_local_experts": 8, "num_experts_per_tok": 1, "intermediate_size_mlp": 2048}


@pytest.mark.parametrize(
    ("family", "values", "moe_layers"),
    [
        # transformers 5.24: layer i has experts if i + 1 is a multiple of the step, and it is none of the first
        (qwen_moe, QWEN | {"num_hidden_layers": 7}, 3),
        (qwen_moe, QWEN | {"num_hidden_layers": 8, "mlp_only_layers": [0, 1, 2]}, 3),
        (qwen_moe, QWEN | {"num_hidden_layers": 3, "decoder_sparse_step": 4}, 0),
        (llama4, SCOUT | {"num_hidden_layers": 5, "interleave_moe_layer_step": 2}, 2),
        (llama4, SCOUT | {"num_hidden_layers": 5, "moe_layers": [1, 3]}, 2),
        (llama4, SCOUT | {"num_hidden_layers": 5, "moe_layers": [0, 1, 2, 3, 4, 5, 6]}, 5),
        (ernie, ERNIE | {"num_hidden_layers": 5, "moe_layer_interval": 2, "moe_layer_start_index": 2}, 1),
    ],
)
def test_layers_with_experts_are_those_at_a_multiple_of_their_interval(family, values, moe_layers):
    shape = family(ConfigJson("c.json", values))

    assert (shape.moe_layers, shape.layers - shape.moe_layers > 0) == (moe_layers, shape.ffn_hidden > 0)


def test_experts_in_irregular_layers_are_refused():
    with pytest.raises(InputFileError, match=r"moe_layers: expected every 2-th layer, as the first one is 1, found"):
        llama4(ConfigJson("c.json", SCOUT | {"num_hidden_layers": 5, "moe_layers": [1, 2]}))


def test_shared_blocks_of_granite_are_a_number_of_experts():
    values = ERNIE | {"num_local_experts": 8, "num_experts_per_tok": 2}

    assert granite_moe_shared(ConfigJson("c.json", values | {"shared_intermediate_size": 2048})).shared_experts == 2
    assert granite_moe_shared(ConfigJson("c.json", values)).shared_experts == 0
    with pytest.raises(InputFileError, match=r"shared_intermediate_size: expected a multiple of intermediate_size"):
        granite_moe_shared(ConfigJson("c.json", values | {"shared_intermediate_size": 1000}))


@pytest.mark.parametrize(
    ("values", "dense"),
    [
        ({}, 1),
        ({"first_k_dense_replace": 2}, 2),
        ({"first_k_dense_replace": 9}, 4),
        ({"mlp_layer_types": ["dense", "dense", "dense", "sparse"], "first_k_dense_replace": 2}, 3),
    ],
)
def test_the_first_dense_layers_are_listed_or_counted(values, dense):
    assert first_dense(ConfigJson("c.json", ERNIE | values), default=1) == dense


def test_layers_of_experts_begin_where_the_file_says_and_go_on_to_the_last():
    shape = ernie(ConfigJson("c.json", ERNIE | {"moe_layer_end_index": 3}))

    assert (shape.dense_layers, shape.moe_layers, shape.shared_experts) == (1, 3, 1)
    with pytest.raises(InputFileError, match=r"moe_layer_end_index: expected the last layer \(3\), found `2`"):
        ernie(ConfigJson("c.json", ERNIE | {"moe_layer_end_index": 2}))
