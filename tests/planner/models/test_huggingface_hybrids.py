"""Hybrids in a `config.json`: which layers attend, which scan, and what they are made of."""

from __future__ import annotations

import json

import pytest

from planner.errors import InputFileError
from planner.models.catalogue import find_model
from planner.models.huggingface import shape_from_config
from planner.models.huggingface_hybrids import bamba, falcon_h1, granite_hybrid, nemotron_h, qwen_next, qwen_next_moe
from planner.models.huggingface_json import ConfigJson

PATTERN = "MEMEM*EMEMEM*EMEMEM*EMEMEM*EMEMEM*EMEMEMEM*EMEMEMEME"
NANO = {
    "model_type": "nemotron_h", "hidden_size": 2688, "num_attention_heads": 32, "num_key_value_heads": 2,
    "head_dim": 128,
    "vocab_size": 131072, "max_position_embeddings": 262144, "n_routed_experts": 128, "num_experts_per_tok": 6,
    "hybrid_override_pattern": PATTERN, "moe_intermediate_size": 1856,
    "moe_shared_expert_intermediate_size": 3712, "n_shared_experts": 1, "intermediate_size": 1856, "n_group": 1,
    "topk_group": 1, "mamba_num_heads": 64, "mamba_head_dim": 64, "ssm_state_size": 128, "n_groups": 8,
    "conv_kernel": 4, "tie_word_embeddings": False,
}  # fmt: skip
NEXT = {
    "hidden_size": 2048, "num_hidden_layers": 48, "num_attention_heads": 16, "num_key_value_heads": 2, "head_dim": 256,
    "vocab_size": 151936, "num_experts": 512, "num_experts_per_tok": 10, "moe_intermediate_size": 512,
    "shared_expert_intermediate_size": 512, "intermediate_size": 5632, "linear_num_key_heads": 16,
    "linear_key_head_dim": 128, "linear_num_value_heads": 32, "linear_value_head_dim": 128,
}  # fmt: skip
MAMBA = {
    "hidden_size": 512, "num_hidden_layers": 4, "num_attention_heads": 8, "intermediate_size": 1024, "vocab_size": 5000,
    "mamba_n_heads": 16, "mamba_n_groups": 1, "mamba_d_state": 64, "mamba_d_head": "auto", "mamba_expand": 2,
}  # fmt: skip


def config(values: dict[str, object]) -> ConfigJson:
    return ConfigJson("c.json", values)


def test_a_pattern_of_single_layers_is_read_in_pairs():
    shape = shape_from_config(json.dumps(NANO), "nano/config.json")
    listed = {key: value for key, value in NANO.items() if key != "hybrid_override_pattern"} | {
        "layers_block_type": [
            {"M": "mamba", "E": "moe", "*": "attention"}[kind] for kind in NANO["hybrid_override_pattern"]
        ]
    }

    # 52 layers: 23 of Mamba-2, 23 of experts, 6 of attention
    assert (shape.layers, shape.attention_layers, shape.moe_layers) == (26, 6, 23)
    assert shape.linear is not None
    assert shape.linear.layers == 23
    assert shape.params_total == find_model("nemotron-3-nano").params_total == pytest.approx(31.6e9, rel=0.001)
    assert shape.params_active == find_model("nemotron-3-nano").params_active
    assert shape_from_config(json.dumps(listed), "nano/config.json") == shape


def test_dense_layers_beside_experts_are_no_experts():
    shape = nemotron_h(config(NANO | {"hybrid_override_pattern": "M-ME*-ME"}))

    assert (shape.layers, shape.ffn_layers, shape.moe_layers) == (4, 4, 2)
    assert shape.ffn_hidden == 1856


def test_experts_behind_a_projection_are_smaller():
    shape = nemotron_h(config(NANO | {"moe_latent_size": 1024}))

    assert shape.expert_params == 2 * 1024 * 1856
    # the projections to and from 1024, and the shared expert at full width
    assert shape.shared_params == 2 * 2688 * 3712 + 2 * 2688 * 1024


def test_the_shared_experts_of_nemotron_are_one_of_the_stated_size_however_many_they_are():
    with_one, with_three = (nemotron_h(config(NANO | {"n_shared_experts": count})) for count in (1, 3))

    # transformers, `NemotronHMoE`: one MLP of `moe_shared_expert_intermediate_size`, 3712 = 2 x 1856
    assert with_one.shared_experts == with_three.shared_experts == 2


def test_the_language_model_of_nemotron_omni_is_read():
    whole = {"model_type": "nemotron_h_omni", "text_config": NANO}

    assert shape_from_config(json.dumps(whole), "omni/config.json").params_total == pytest.approx(31.6e9, rel=0.001)


def test_every_fourth_layer_of_qwen3_next_attends_unless_its_file_says_otherwise():
    shape = qwen_next_moe(config(NEXT))
    other = qwen_next_moe(config(NEXT | {"layer_types": ["linear_attention", "full_attention"] * 24}))

    assert (shape.attention_layers, other.attention_layers) == (12, 24)
    assert shape.gated_attention
    assert shape.params_total == find_model("qwen3-next").params_total


def test_a_dense_qwen_of_attention_alone_scans_nothing():
    shape = qwen_next(config(NEXT | {"layer_types": ["full_attention"] * 48}))

    assert shape.linear is None
    assert shape.attention_share == 1


def test_falcon_h1_has_both_in_every_layer():
    shape = falcon_h1(config(MAMBA | {"mamba_d_ssm": 512}))

    assert shape.attention_share == shape.linear_share == 1
    assert shape.linear is not None
    assert (shape.linear.inner, shape.linear.value_dim) == (512, 32)


def test_bamba_attends_in_the_layers_that_it_names():
    shape = bamba(config(MAMBA | {"attn_layer_indices": [-1, 1, 3, 9]}))  # of which a shortened model has two

    assert (shape.attention_layers, shape.linear_share) == (2, 0.5)


def test_the_width_of_falcons_scan_is_no_key_of_bamba():
    shape = bamba(config(MAMBA | {"attn_layer_indices": [1], "mamba_d_ssm": 256}))

    assert shape.linear is not None
    assert shape.linear.inner == 2 * 512


def test_granite_without_a_word_on_its_experts_has_eight():
    values = {**MAMBA, "model_type": "granitemoehybrid", "layer_types": ["mamba"] * 4}
    shape = shape_from_config(json.dumps(values), "granite/config.json")

    assert (shape.experts, shape.top_k) == (8, 2)


@pytest.mark.parametrize(("experts", "moe_layers", "ffn"), [(0, 0, 2048), (4, 4, 0)])
def test_granite_has_a_shared_feed_forward_beside_experts_or_alone(experts, moe_layers, ffn):
    kinds = ["mamba", "mamba", "mamba", "attention"]
    values = {"shared_intermediate_size": 2048, "num_local_experts": experts, "num_experts_per_tok": 2}
    shape = granite_hybrid(config(MAMBA | {"layer_types": kinds} | values))

    assert (shape.attention_layers, shape.moe_layers, shape.ffn_hidden) == (1, moe_layers, ffn)
    assert shape.shared_experts == (2 if experts else 0)


@pytest.mark.parametrize(
    ("family", "values", "message"),
    [
        (nemotron_h, NANO | {"hybrid_override_pattern": "MEX"}, "hybrid_override_pattern: expected layers among"),
        (nemotron_h, {**NANO, "hybrid_override_pattern": None}, "hybrid_override_pattern: expected the layers, for"),
        (nemotron_h, NANO | {"n_groups": 7}, "n_groups: expected a divisor of mamba_num_heads (64), found `7`"),
        (
            nemotron_h, NANO | {"moe_shared_expert_intermediate_size": 3000},
            "moe_shared_expert_intermediate_size: expected a multiple of moe_intermediate_size, found `3000`",
        ),
        (
            nemotron_h, NANO | {"hybrid_override_pattern": "ME-E"},
            "hybrid_override_pattern: expected experts in half of the layers at most, found `\"ME-E\"`",
        ),
        (
            qwen_next_moe, NEXT | {"linear_num_key_heads": 12},
            "linear_num_key_heads: expected a divisor of linear_num_value_heads (32), found `12`",
        ),
        (
            bamba, MAMBA | {"mamba_n_heads": 48},
            "mamba_n_heads: expected a divisor of the 1024 values of a token, found `48`",
        ),
        (qwen_next_moe, NEXT | {"layer_types": ["full_attention"]}, "layer_types: expected one entry for each of 48"),
        (qwen_next_moe, NEXT | {"layer_types": ["moe"] * 48}, "layer_types: expected layers among"),
        (
            granite_hybrid, MAMBA | {"layer_types": ["mamba"], "shared_intermediate_size": 8},
            "layer_types: expected one entry for each of 4 layers",
        ),
        (
            granite_hybrid,
            MAMBA | {"num_local_experts": 4, "num_experts_per_tok": 2, "shared_intermediate_size": 1000},
            "shared_intermediate_size: expected a multiple of intermediate_size, found `1000`",
        ),
    ],
)  # fmt: skip
def test_a_hybrid_that_cannot_be_is_refused(family, values, message):
    with pytest.raises(InputFileError) as caught:
        family(config(values))

    assert message in caught.value.message
