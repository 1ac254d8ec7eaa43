"""Hybrids in a `config.json`: which layers attend, which scan, and what they are made of."""

from __future__ import annotations

import json
import tracemalloc
from dataclasses import replace

import pytest

from planner.errors import InputFileError
from planner.models.catalogue import find_model
from planner.models.huggingface import shape_from_config
from planner.models.huggingface_hybrids import (
    bamba,
    falcon_h1,
    granite_hybrid,
    jamba,
    kimi_linear,
    lfm2,
    lfm2_moe,
    nemotron_h,
    qwen_next,
    qwen_next_moe,
)
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
LFM2 = {  # LiquidAI/LFM2-1.2B
    "model_type": "lfm2", "hidden_size": 2048, "block_ff_dim": 12288, "block_auto_adjust_ff_dim": True,
    "block_ffn_dim_multiplier": 1.0, "block_multiple_of": 256, "conv_L_cache": 3, "conv_bias": False,
    "full_attn_idxs": [2, 5, 8, 10, 12, 14], "num_hidden_layers": 16, "num_attention_heads": 32,
    "num_key_value_heads": 8, "vocab_size": 65536, "max_position_embeddings": 128000,
}  # fmt: skip
LFM2_MOE = {  # LiquidAI/LFM2-8B-A1B
    "model_type": "lfm2_moe", "hidden_size": 2048, "intermediate_size": 7168, "moe_intermediate_size": 1792,
    "num_dense_layers": 2, "num_hidden_layers": 24, "num_experts": 32, "num_experts_per_tok": 4,
    "num_attention_heads": 32, "num_key_value_heads": 8, "vocab_size": 65536, "conv_L_cache": 3,
    "layer_types": ["full_attention" if layer in (2, 6, 10, 14, 18, 21) else "conv" for layer in range(24)],
}  # fmt: skip
JAMBA = {  # ai21labs/Jamba-v0.1
    "model_type": "jamba", "hidden_size": 4096, "intermediate_size": 14336, "num_hidden_layers": 32,
    "num_attention_heads": 32, "num_key_value_heads": 8, "attn_layer_period": 8, "attn_layer_offset": 4,
    "expert_layer_period": 2, "expert_layer_offset": 1, "num_experts": 16, "num_experts_per_tok": 2,
    "mamba_d_state": 16, "mamba_d_conv": 4, "mamba_expand": 2, "mamba_dt_rank": 256, "vocab_size": 65536,
}  # fmt: skip
ATTENDING = [4, 8, 12, 16, 20, 24, 27]
KIMI = {  # moonshotai/Kimi-Linear-48B-A3B-Base
    "model_type": "kimi_linear", "hidden_size": 2304, "intermediate_size": 9216, "moe_intermediate_size": 1024,
    "num_hidden_layers": 27, "num_attention_heads": 32, "num_key_value_heads": 32, "head_dim": 72, "kv_lora_rank": 512,
    "q_lora_rank": None, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "v_head_dim": 128, "num_experts": 256,
    "num_experts_per_token": 8, "num_shared_experts": 1, "num_expert_group": 1, "topk_group": 1,
    "first_k_dense_replace": 1, "model_max_length": 1048576, "vocab_size": 163840,
    "linear_attn_config": {
        "full_attn_layers": ATTENDING, "kda_layers": [layer for layer in range(1, 28) if layer not in ATTENDING],
        "head_dim": 128, "num_heads": 32, "short_conv_kernel_size": 4,
    },
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
    ("values", "params", "active"),
    [
        # parameters as `AutoModelForCausalLM` of transformers 5.24 builds them; a token skips the other experts
        (LFM2, 1_170_340_608, 1_170_340_608),
        (LFM2_MOE, 8_339_929_856, 8_339_929_856 - 22 * 28 * 3 * 2048 * 1792),
        (JAMBA, 51_570_323_328, 51_570_323_328 - 16 * 14 * 3 * 4096 * 14336),
        (KIMI, 49_122_675_072, 49_122_675_072 - 26 * 248 * 3 * 2304 * 1024),
    ],
)
def test_a_published_hybrid_has_as_many_parameters_as_the_model(values, params, active):
    shape = shape_from_config(json.dumps(values), "m/config.json")

    assert shape.params_total == pytest.approx(params, rel=1e-12)
    assert shape.params_active == pytest.approx(active, rel=1e-12)


@pytest.mark.parametrize(
    ("values", "name"), [(LFM2, "lfm2-1.2b"), (LFM2_MOE, "lfm2-8b-a1b"), (KIMI, "kimi-linear-48b-a3b")]
)
def test_a_published_hybrid_is_that_of_the_catalogue(values, name):
    shape, known = shape_from_config(json.dumps(values), "m/config.json"), find_model(name)

    of_the_row = {"name": known.name, "evidence": known.evidence, "params_published": known.params_published}
    assert replace(shape, **of_the_row) == known


def test_lfm2_convolves_where_it_does_not_attend():
    shape = lfm2(config(LFM2))

    # w1 of [8192, 2048]: two thirds of 12,288, a multiple of 256
    assert (shape.attention_layers, shape.ffn_hidden, shape.tied_embeddings) == (6, 8192, True)
    assert shape.linear is not None
    assert (shape.linear.layers, shape.linear.outputs, shape.linear.scans) == (10, 3 * 2048, False)
    assert not lfm2(config(LFM2 | {"tie_embedding": False})).tied_embeddings


@pytest.mark.parametrize(
    ("change", "ffn"),
    [
        ({"block_auto_adjust_ff_dim": False}, 12288),
        ({"block_ffn_dim_multiplier": 1.3}, 10752),  # int(1.3 x 8192) = 10,649, rounded up to a multiple of 256
        ({"block_ffn_dim_multiplier": None, "block_multiple_of": 1000}, 9000),
    ],
)
def test_the_feed_forward_size_of_lfm2_is_reduced_and_rounded_as_its_code_does(change, ffn):
    assert lfm2(config(LFM2 | change)).ffn_hidden == ffn


@pytest.mark.parametrize(
    ("change", "attention"),
    [
        ({"full_attn_idxs": None}, 16),  # every layer
        ({"full_attn_idxs": []}, 0),
        ({"layer_types": ["conv"] * 15 + ["full_attention"]}, 1),
    ],
)
def test_without_a_list_every_layer_of_lfm2_attends(change, attention):
    shape = lfm2(config(LFM2 | change))

    assert shape.attention_layers == attention
    assert (shape.linear is None) == (attention == 16)


def test_the_first_layers_of_a_sparse_lfm2_are_dense():
    shape = lfm2_moe(config(LFM2_MOE))

    assert (shape.dense_layers, shape.moe_layers, shape.ffn_hidden) == (2, 22, 7168)


def test_jamba_attends_and_routes_where_its_periods_and_offsets_say():
    shape = jamba(config(JAMBA))

    assert (shape.attention_layers, shape.moe_layers, shape.layers) == (4, 16, 32)
    assert shape.linear is not None
    # `in_proj` of [16384, 4096], `x_proj` of [288, 8192], `dt_proj` of [8192, 256], `out_proj` of [4096, 8192]
    assert shape.linear.matrix_params(4096) == 16384 * 4096 + 288 * 8192 + 8192 * 256 + 4096 * 8192
    assert jamba(config(JAMBA | {"num_hidden_layers": 5, "expert_layer_offset": 0})).moe_layers == 3
    assert jamba(config(JAMBA | {"mamba_dt_rank": "auto"})) == shape


def test_a_jamba_of_one_expert_is_dense():
    shape = jamba(config(JAMBA | {"num_experts": 1}))

    assert (shape.experts, shape.ffn_hidden) == (0, 14336)


def test_kimi_attends_to_latent_states_in_the_layers_of_its_list():
    shape = kimi_linear(config(KIMI))
    in_five = {"num_hidden_layers": 27, "linear_attn_config": None, "linear_num_heads": 32}

    assert (shape.attention_layers, shape.kv_lora_rank, shape.q_lora_rank, shape.head_dim) == (7, 512, None, 192)
    assert (shape.dense_layers, shape.moe_layers, shape.shared_experts) == (1, 26, 1)
    assert shape.linear is not None
    # q, k, v and out of 32 heads of 128; beta of 32; decay and gate from 2304 to 128 and to 4096 each
    assert shape.linear.matrix_params(2304) == 4 * 2304 * 4096 + 2304 * 32 + 2 * (2304 * 128 + 128 * 4096)
    assert kimi_linear(config(KIMI | in_five)).attention_layers == 6  # layers 4, 8, ..., 24, counted from 0


@pytest.mark.parametrize(
    ("family", "values"),
    [
        (lfm2, LFM2), (jamba, JAMBA), (kimi_linear, KIMI | {"linear_attn_config": None}),
        (granite_hybrid, MAMBA | {"shared_intermediate_size": 2048}),
    ],
)  # fmt: skip
def test_a_million_layers_take_no_memory(family, values):
    tracemalloc.start()
    try:
        shape = family(config(values | {"num_hidden_layers": 10**6}))
        peak_bytes = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()

    assert shape.layers == 10**6
    assert peak_bytes < 10**6


@pytest.mark.parametrize(
    ("family", "values", "message"),
    [
        (lfm2, LFM2 | {"layer_types": ["conv"]}, "layer_types: expected one entry for each of 16 layers"),
        (lfm2, LFM2 | {"layer_types": ["mamba"] * 16}, "layer_types: expected layers among"),
        (
            lfm2, LFM2 | {"block_ffn_dim_multiplier": "2"},
            'block_ffn_dim_multiplier: expected a number above 0 and at most 100, found `"2"`',
        ),
        (
            lfm2, LFM2 | {"block_ffn_dim_multiplier": float("inf")},
            "block_ffn_dim_multiplier: expected a number above 0 and at most 100, found `Infinity`",
        ),
        (
            lfm2, LFM2 | {"block_ffn_dim_multiplier": float("nan")},
            "block_ffn_dim_multiplier: expected a number above 0 and at most 100, found `NaN`",
        ),
        (jamba, JAMBA | {"attn_layer_offset": 8}, "attn_layer_offset: expected less than attn_layer_period (8), found"),
        (
            kimi_linear, KIMI | {"linear_attn_config": {"full_attn_layers": [4], "kda_layers": [1, 2, 3]}},
            "linear_attn_config: expected each of 27 layers in `full_attn_layers` or `kda_layers`",
        ),
        (
            kimi_linear, KIMI | {"mlp_layer_types": ["sparse"] * 26 + ["dense"]},
            "mlp_layer_types: expected `dense` for the first layers, and `sparse` for all others",
        ),
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
