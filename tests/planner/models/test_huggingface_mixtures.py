"""Mixtures of experts in a `config.json`: how many there are, which a token may see, and which layers have them."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from planner.errors import InputFileError
from planner.models.catalogue import find_model
from planner.models.huggingface import shape_from_config
from planner.models.huggingface_json import ConfigJson
from planner.models.huggingface_mixtures import (
    bailing,
    ernie,
    experts_of,
    first_dense,
    granite_moe_shared,
    groups_of,
    hunyuan,
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


HUNYUAN = {  # tencent/Hunyuan-A13B-Instruct
    "model_type": "hunyuan_v1_moe", "hidden_size": 4096, "intermediate_size": 3072, "num_hidden_layers": 32,
    "num_attention_heads": 32, "num_key_value_heads": 8, "vocab_size": 128167, "num_experts": 64,
    "moe_topk": [8] * 32, "moe_intermediate_size": [3072] * 32, "num_shared_expert": [1] * 32,
    "tie_word_embeddings": True,
}  # fmt: skip
LING = {  # inclusionAI/Ling-mini-base-2.0, and the module of multi-token prediction with which it was trained
    "model_type": "bailing_moe", "hidden_size": 2048, "intermediate_size": 5120, "num_hidden_layers": 20,
    "num_attention_heads": 16, "num_key_value_heads": 4, "head_dim": 128, "vocab_size": 157184, "num_experts": 256,
    "num_experts_per_tok": 8, "num_shared_experts": 1, "moe_intermediate_size": 512, "first_k_dense_replace": 1,
    "n_group": 8, "topk_group": 4, "num_nextn_predict_layers": 1,
}  # fmt: skip
PUBLISHED = {
    "hunyuan-a13b": HUNYUAN,
    "ling-mini-2.0": LING,
    "deepseek-moe-16b": {
        "model_type": "deepseek", "hidden_size": 2048, "intermediate_size": 10944, "moe_intermediate_size": 1408,
        "num_hidden_layers": 28, "num_attention_heads": 16, "num_key_value_heads": 16, "n_routed_experts": 64,
        "n_shared_experts": 2, "num_experts_per_tok": 6, "first_k_dense_replace": 1, "moe_layer_freq": 1,
        "vocab_size": 102400, "max_position_embeddings": 4096,
    },
    "glm-4.7": {
        "model_type": "glm4_moe", "hidden_size": 5120, "intermediate_size": 12288, "moe_intermediate_size": 1536,
        "num_hidden_layers": 92, "num_attention_heads": 96, "num_key_value_heads": 8, "head_dim": 128,
        "n_routed_experts": 160, "n_shared_experts": 1, "num_experts_per_tok": 8, "first_k_dense_replace": 3,
        "n_group": 1, "topk_group": 1, "num_nextn_predict_layers": 1, "vocab_size": 151552, "attention_bias": True,
        "max_position_embeddings": 202752,
    },
}  # fmt: skip
"""The keys of published files that say the shape, under a name in the catalogue."""


@pytest.mark.parametrize("name", PUBLISHED)
def test_a_published_mixture_is_that_of_the_catalogue(name):
    shape, known = shape_from_config(json.dumps(PUBLISHED[name]), f"{name}/config.json"), find_model(name)

    of_the_row = {"name": known.name, "evidence": known.evidence, "params_published": known.params_published}
    assert replace(shape, **of_the_row) == known


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"moe_topk": [8] * 31}, "moe_topk: expected the same number for each layer, found `[8, 8"),
        ({"moe_topk": [8] * 31 + [4]}, "moe_topk: expected the same number for each layer, found `[8, 8"),
        ({"num_experts": [0] * 32}, "num_experts: expected the same number for each layer, found `[0, 0"),
        ({"moe_topk": 65}, "moe_topk: expected at most num_experts (64), found `65`"),
        ({"num_experts": None}, "num_experts: expected a whole number of at least 1, found `null`"),
    ],
)
def test_hunyuans_layers_have_the_same_experts(change, message):
    with pytest.raises(InputFileError) as caught:
        hunyuan(ConfigJson("c.json", HUNYUAN | change))

    assert message in caught.value.message


def test_ling_without_groups_routes_over_all_experts():
    without = {key: value for key, value in LING.items() if not key.endswith("_group")}

    assert bailing(ConfigJson("c.json", LING)).expert_groups == 8
    assert bailing(ConfigJson("c.json", without)).expert_groups == 0
