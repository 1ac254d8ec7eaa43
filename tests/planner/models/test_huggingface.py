import json
import re
from dataclasses import fields, replace
from pathlib import Path

import pytest

from planner.errors import InputFileError
from planner.evidence import EvidenceKind
from planner.models.catalogue import find_model
from planner.models.huggingface import shape_from_config
from planner.models.huggingface_families import DEFAULTS, FAMILIES
from planner.models.shape import ModelShape

LLAMA = {
    "model_type": "llama",
    "architectures": ["LlamaForCausalLM"],
    "hidden_size": 8192,
    "intermediate_size": 28672,
    "num_hidden_layers": 80,
    "num_attention_heads": 64,
    "num_key_value_heads": 8,
    "vocab_size": 128256,
    "max_position_embeddings": 131072,
    "rope_scaling": {"factor": 8.0, "original_max_position_embeddings": 8192, "rope_type": "llama3"},
    "tie_word_embeddings": False,
}
CONFIGS = {
    "llama-3.1-70b": LLAMA,
    "llama-3.2-1b": {
        "model_type": "llama",
        "hidden_size": 2048,
        "intermediate_size": 8192,
        "num_hidden_layers": 16,
        "num_attention_heads": 32,
        "num_key_value_heads": 8,
        "head_dim": 64,
        "vocab_size": 128256,
        "tie_word_embeddings": True,
    },
    "llama-2-7b": {  # an early file: no num_key_value_heads
        "model_type": "llama",
        "hidden_size": 4096,
        "intermediate_size": 11008,
        "num_hidden_layers": 32,
        "num_attention_heads": 32,
        "vocab_size": 32000,
        "max_position_embeddings": 4096,
    },
    "mistral-7b": {
        "model_type": "mistral",
        "hidden_size": 4096,
        "intermediate_size": 14336,
        "num_hidden_layers": 32,
        "num_attention_heads": 32,
        "num_key_value_heads": 8,
        "sliding_window": 4096,
        "vocab_size": 32000,
    },
    "mixtral-8x7b": {
        "model_type": "mixtral",
        "hidden_size": 4096,
        "intermediate_size": 14336,
        "num_hidden_layers": 32,
        "num_attention_heads": 32,
        "num_key_value_heads": 8,
        "num_local_experts": 8,
        "num_experts_per_tok": 2,
        "sliding_window": None,
        "vocab_size": 32000,
    },
    "qwen2.5-7b": {
        "model_type": "qwen2",
        "hidden_size": 3584,
        "intermediate_size": 18944,
        "num_hidden_layers": 28,
        "num_attention_heads": 28,
        "num_key_value_heads": 4,
        "sliding_window": 131072,
        "use_sliding_window": False,
        "vocab_size": 152064,
    },
    "qwen2-57b-a14b": {
        "model_type": "qwen2_moe",
        "hidden_size": 3584,
        "intermediate_size": 18944,
        "num_hidden_layers": 28,
        "num_attention_heads": 28,
        "num_key_value_heads": 4,
        "num_experts": 64,
        "num_experts_per_tok": 8,
        "moe_intermediate_size": 2560,
        "shared_expert_intermediate_size": 20480,
        "decoder_sparse_step": 1,
        "vocab_size": 151936,
    },
    "qwen3-8b": {
        "model_type": "qwen3",
        "hidden_size": 4096,
        "intermediate_size": 12288,
        "num_hidden_layers": 36,
        "num_attention_heads": 32,
        "num_key_value_heads": 8,
        "head_dim": 128,
        "vocab_size": 151936,
    },
    "qwen3-235b-a22b": {
        "model_type": "qwen3_moe",
        "hidden_size": 4096,
        "intermediate_size": 12288,
        "num_hidden_layers": 94,
        "num_attention_heads": 64,
        "num_key_value_heads": 4,
        "head_dim": 128,
        "num_experts": 128,
        "num_experts_per_tok": 8,
        "moe_intermediate_size": 1536,
        "mlp_only_layers": [],
        "vocab_size": 151936,
    },
    "deepseek-v3": {
        "model_type": "deepseek_v3",
        "num_nextn_predict_layers": 1,
        "hidden_size": 7168,
        "intermediate_size": 18432,
        "num_hidden_layers": 61,
        "num_attention_heads": 128,
        "num_key_value_heads": 128,
        "q_lora_rank": 1536,
        "kv_lora_rank": 512,
        "qk_nope_head_dim": 128,
        "qk_rope_head_dim": 64,
        "v_head_dim": 128,
        "n_routed_experts": 256,
        "n_shared_experts": 1,
        "num_experts_per_tok": 8,
        "moe_intermediate_size": 2048,
        "moe_layer_freq": 1,
        "first_k_dense_replace": 3,
        "n_group": 8,
        "topk_group": 4,
        "topk_method": "noaux_tc",
        "vocab_size": 129280,
    },
    "deepseek-v2-lite": {
        "model_type": "deepseek_v2",
        "hidden_size": 2048,
        "intermediate_size": 10944,
        "num_hidden_layers": 27,
        "num_attention_heads": 16,
        "q_lora_rank": None,
        "kv_lora_rank": 512,
        "qk_nope_head_dim": 128,
        "qk_rope_head_dim": 64,
        "v_head_dim": 128,
        "n_routed_experts": 64,
        "n_shared_experts": 2,
        "num_experts_per_tok": 6,
        "moe_intermediate_size": 1408,
        "first_k_dense_replace": 1,
        "n_group": 1,
        "topk_group": 1,
        "topk_method": "greedy",
        "vocab_size": 102400,
    },
    "gpt-2-1.5b": {
        "model_type": "gpt2",
        "n_embd": 1600,
        "n_layer": 48,
        "n_head": 25,
        "n_positions": 1024,
        "vocab_size": 50257,
    },
    "starcoder-15b": {
        "model_type": "gpt_bigcode",
        "n_embd": 6144,
        "n_layer": 40,
        "n_head": 48,
        "n_inner": 24576,
        "n_positions": 8192,
        "multi_query": True,
        "vocab_size": 49152,
    },
    "gpt-neox-20b": {
        "model_type": "gpt_neox",
        "hidden_size": 6144,
        "intermediate_size": 24576,
        "num_hidden_layers": 44,
        "num_attention_heads": 64,
        "max_position_embeddings": 2048,
        "vocab_size": 50432,
    },
    "bert-large": {
        "model_type": "bert",
        "hidden_size": 1024,
        "intermediate_size": 4096,
        "num_hidden_layers": 24,
        "num_attention_heads": 16,
        "max_position_embeddings": 512,
        "vocab_size": 30522,
    },
    "opt-6.7b": {
        "model_type": "opt",
        "hidden_size": 4096,
        "ffn_dim": 16384,
        "num_hidden_layers": 32,
        "num_attention_heads": 32,
        "max_position_embeddings": 2048,
        "word_embed_proj_dim": 4096,
        "vocab_size": 50272,
    },
    "bloom-176b": {
        "model_type": "bloom",
        "n_embed": 14336,
        "n_layer": 70,
        "num_attention_heads": 112,
        "seq_length": 2048,
        "vocab_size": 250880,
    },
    "mpt-7b": {
        "model_type": "mpt",
        "d_model": 4096,
        "n_layers": 32,
        "n_heads": 32,
        "expansion_ratio": 4,
        "max_seq_len": 2048,
        "no_bias": True,
        "attn_config": {"alibi": True, "attn_type": "multihead_attention"},
        "vocab_size": 50432,
    },
    "falcon-40b": {
        "model_type": "RefinedWeb",
        "hidden_size": 8192,
        "n_layer": 60,
        "n_head": 128,
        "n_head_kv": 8,
        "new_decoder_architecture": True,
        "vocab_size": 65024,
    },
    "falcon-7b": {
        "model_type": "falcon",
        "hidden_size": 4544,
        "num_hidden_layers": 32,
        "num_attention_heads": 71,
        "multi_query": True,
        "vocab_size": 65024,
    },
    "gemma-2-9b": {
        "model_type": "gemma2",
        "hidden_size": 3584,
        "intermediate_size": 14336,
        "num_hidden_layers": 42,
        "num_attention_heads": 16,
        "num_key_value_heads": 8,
        "head_dim": 256,
        "sliding_window": 4096,
        "vocab_size": 256000,
    },
    "gemma-3-4b": {
        "model_type": "gemma3",
        "text_config": {
            "model_type": "gemma3_text",
            "hidden_size": 2560,
            "intermediate_size": 10240,
            "num_hidden_layers": 34,
            "sliding_window": 1024,
        },
    },
    "olmo-2-32b": {
        "model_type": "olmo2",
        "hidden_size": 5120,
        "intermediate_size": 27648,
        "num_hidden_layers": 64,
        "num_attention_heads": 40,
        "num_key_value_heads": 8,
        "vocab_size": 100352,
    },
    "llama-4-maverick": {
        "model_type": "llama4",
        "text_config": {
            "hidden_size": 5120,
            "intermediate_size": 8192,
            "intermediate_size_mlp": 16384,
            "interleave_moe_layer_step": 2,
            "num_hidden_layers": 48,
            "num_attention_heads": 40,
            "num_key_value_heads": 8,
            "head_dim": 128,
            "num_local_experts": 128,
            "num_experts_per_tok": 1,
            "vocab_size": 202048,
        },
    },
    "gpt-oss-120b": {
        "model_type": "gpt_oss",
        "hidden_size": 2880,
        "intermediate_size": 2880,
        "num_hidden_layers": 36,
        "num_attention_heads": 64,
        "num_key_value_heads": 8,
        "head_dim": 64,
        "layer_types": ["sliding_attention", "full_attention"] * 18,
        "num_local_experts": 128,
        "num_experts_per_tok": 4,
        "sliding_window": 128,
        "vocab_size": 201088,
    },
}
"""The keys of published files that say the shape, under the catalogue name of the model."""

NOT_IN_THE_FILE = ("name", "context", "params_published", "global_batch_tokens", "evidence", "other_params")
SHAPE_FIELDS = [field.name for field in fields(ModelShape) if field.name not in NOT_IN_THE_FILE]


@pytest.mark.parametrize("name", CONFIGS)
def test_a_published_file_gives_the_shape_of_the_catalogue(name):
    shape, known = shape_from_config(json.dumps(CONFIGS[name]), f"{name}/config.json"), find_model(name)

    assert {field: getattr(shape, field) for field in SHAPE_FIELDS} == {
        field: getattr(known, field) for field in SHAPE_FIELDS
    }
    # the catalogue counts norms and biases by its rule; some files tell their exact number
    assert replace(shape, other_params=None).params_total == known.params_total


def test_the_name_and_the_source_are_those_of_the_file():
    shape = shape_from_config(json.dumps(LLAMA), "models/mine/config.json")

    assert shape.name == "mine"
    assert shape.evidence is not None
    assert (shape.evidence.kind, shape.evidence.source) == (EvidenceKind.GIVEN, "models/mine/config.json")
    assert shape_from_config(json.dumps(LLAMA | {"_name_or_path": "org/Llama-X"}), "c.json").name == "Llama-X"


def test_the_training_length_is_not_the_longest_length():
    assert shape_from_config(json.dumps(LLAMA), "c.json").context == 8192
    assert shape_from_config(json.dumps(LLAMA | {"rope_scaling": None}), "c.json").context == 4096


VERSION_5 = {  # what `save_pretrained` of transformers 5.24 writes otherwise than the published file
    "llama-3.1-70b": {
        "rope_scaling": ...,
        "rope_parameters": {
            "factor": 8.0, "high_freq_factor": 4.0, "low_freq_factor": 1.0, "original_max_position_embeddings": 8192,
            "rope_theta": 500000.0, "rope_type": "llama3",
        },
    },
    "qwen3-235b-a22b": {"num_experts": ..., "num_local_experts": 128},
    "gemma-3-4b": {
        "text_config": CONFIGS["gemma-3-4b"]["text_config"] | {
            "layer_types": [("full" if layer % 6 == 0 else "sliding") + "_attention" for layer in range(1, 35)],
            "rope_parameters": {
                "full_attention": {"rope_theta": 1000000.0, "rope_type": "default"},
                "sliding_attention": {"rope_theta": 10000.0, "rope_type": "default"},
            },
        },
    },
}  # fmt: skip


@pytest.mark.parametrize("name", VERSION_5)
def test_the_same_model_written_by_transformers_5_has_the_same_shape(name):
    changed = {key: value for key, value in (CONFIGS[name] | VERSION_5[name]).items() if value is not ...}
    old, new = (shape_from_config(json.dumps(config), "m/config.json") for config in (CONFIGS[name], changed))

    assert new == old


def test_what_transformers_5_writes_of_every_family_can_be_read():
    transformers = pytest.importorskip("transformers", minversion="5.0")
    # in no release, or their classes leave the experts open
    unknown = {"kimi_k2", "deepseek_v2", "dots1", "deepseek", "bailing_moe", "bailing_moe_v2", "internlm2", "baichuan",
               "mimo"}  # fmt: skip

    for family in FAMILIES.keys() - unknown:
        config = transformers.CONFIG_MAPPING[family](**IMPOSSIBLE.get(family, {}))
        layers = getattr(config, "num_hidden_layers", None) or getattr(config, "n_layer", None) or config.n_layers
        shape = shape_from_config(json.dumps(config.to_dict()), "c.json")
        further = config.num_decoder_layers if family in ("t5", "mt5", "umt5") else 0
        assert shape.layers == (-(-layers // 2) if family == "nemotron_h" else layers + further)


IMPOSSIBLE = {
    "glm4_moe": {"head_dim": 128},  # 96 heads do not divide the hidden size
    "granitemoehybrid": {"intermediate_size": 512},  # what is shared is smaller than an expert
}
"""What a family's class takes by default and no model has."""


@pytest.mark.parametrize("family", DEFAULTS)
def test_a_key_that_a_file_leaves_out_is_taken_as_the_familys_class_in_transformers_does(family):
    transformers = pytest.importorskip("transformers", minversion="5.0")
    config = transformers.CONFIG_MAPPING[family]()

    assert {key: getattr(config, key) for key in DEFAULTS[family]} == DEFAULTS[family]


SMALL = {
    "hidden_size": 512, "num_hidden_layers": 4, "num_attention_heads": 8, "num_key_value_heads": 4, "head_dim": 64,
    "intermediate_size": 1024, "vocab_size": 5000, "max_position_embeddings": 2048, "pad_token_id": 0,
}  # fmt: skip
FEW = {"num_local_experts": 4, "num_experts_per_tok": 2}
BEHIND_A_DENSE_LAYER = {
    "n_routed_experts": 8, "num_experts_per_tok": 2, "moe_intermediate_size": 256, "n_shared_experts": 1,
    "first_k_dense_replace": 1,
}  # fmt: skip
BUILT: dict[str, dict[str, object]] = {
    "apertus": {}, "arcee": {}, "ernie4_5": {}, "exaone4": {}, "glm": {}, "glm4": {}, "granite": {},
    "hunyuan_v1_dense": {}, "olmo3": {}, "seed_oss": {},
    "dots1": BEHIND_A_DENSE_LAYER, "glm4_moe": BEHIND_A_DENSE_LAYER,
    "hunyuan_v1_moe": {"num_experts": 4, "moe_topk": [2] * 4},
    "nemotron_h": {
        "hybrid_override_pattern": "ME*EM-MM*", "n_routed_experts": 8, "num_experts_per_tok": 2, "mamba_num_heads": 8,
        "moe_intermediate_size": 256, "moe_shared_expert_intermediate_size": 512, "moe_latent_size": 128,
        "mamba_head_dim": 32, "ssm_state_size": 64, "n_groups": 2,
    },
    "qwen3_next": {"num_experts": 8, "num_experts_per_tok": 2, "linear_num_value_heads": 8, "linear_num_key_heads": 4},
    "qwen3_5_text": {"layer_types": ["linear_attention", "full_attention"] * 2, "linear_num_key_heads": 8},
    "qwen3_5_moe_text": {"num_experts": 8, "num_experts_per_tok": 2, "linear_num_value_heads": 8,
                         "linear_num_key_heads": 4},
    "falcon_h1": {"mamba_n_heads": 16, "mamba_d_ssm": 512, "mamba_d_state": 64, "mamba_rms_norm": True},
    "bamba": {"mamba_n_heads": 16, "mamba_d_state": 64, "attn_layer_indices": [1, 7]},
    "granitemoehybrid": {
        **FEW, "mamba_n_heads": 16, "mamba_d_state": 64, "shared_intermediate_size": 2048,
        "layer_types": ["linear_attention"] * 3 + ["full_attention"],
    },
    "granitemoe": FEW, "phimoe": FEW, "olmoe": {"num_experts": 4, "num_experts_per_tok": 2},
    "ernie4_5_moe": {
        "moe_num_experts": 8, "moe_k": 2, "moe_intermediate_size": 256, "moe_num_shared_experts": 1,
        "moe_layer_start_index": 1, "moe_layer_end_index": 3,
    },
}  # fmt: skip
"""Families by what their mixture of experts adds to the small shape."""


@pytest.mark.parametrize("family", BUILT)
def test_a_shape_has_as_many_parameters_as_the_model_that_transformers_builds(family):
    transformers, torch = pytest.importorskip("transformers", minversion="5.0"), pytest.importorskip("torch")
    config = transformers.CONFIG_MAPPING[family](**SMALL, **BUILT[family])
    with torch.device("meta"):
        built = transformers.AutoModelForCausalLM.from_config(config)
    shape = shape_from_config(json.dumps(config.to_dict()), "c.json")

    # all but norms, and the biases of a few
    assert shape.params_total == pytest.approx(sum(p.numel() for p in built.parameters()), rel=0.001)


MULTI_HEAD = {"num_attention_heads": 8, "num_key_value_heads": 2, "head_dim": 128, "vocab_size": 5000}
"""Keys that these families' classes keep in the file and do not read, but for the first and the last."""
EXACT: dict[str, dict[str, object]] = {
    "modernbert": SMALL | {"num_hidden_layers": 7, "attention_bias": True, "mlp_bias": True, "norm_bias": True},
    "t5": {"d_model": 512, "d_kv": 48, "d_ff": 700, "num_layers": 3, "num_decoder_layers": 4, "num_heads": 8},
    "umt5": {"d_model": 512, "d_kv": 48, "d_ff": 700, "num_layers": 3, "num_decoder_layers": 4, "num_heads": 8},
    "lfm2": {key: value for key, value in SMALL.items() if key != "head_dim"} | {
        "layer_types": ["conv", "full_attention"] * 2, "conv_bias": True,
    },
    "lfm2_moe": SMALL | {
        "layer_types": ["conv", "full_attention"] * 2, "num_dense_layers": 1, "num_experts": 4,
        "num_experts_per_tok": 2, "moe_intermediate_size": 256,
    },
    "jamba": SMALL | {
        "num_hidden_layers": 7, "attn_layer_period": 3, "attn_layer_offset": 1, "expert_layer_period": 3,
        "num_experts": 4, "mamba_proj_bias": True,
    },
    "kimi_linear": SMALL | {
        "num_hidden_layers": 9, "kv_lora_rank": 64, "q_lora_rank": 96, "qk_rope_head_dim": 32, "qk_nope_head_dim": 64,
        "v_head_dim": 48, "linear_num_heads": 4, "linear_head_dim": 32, "num_local_experts": 4,
        "num_experts_per_tok": 2, "moe_intermediate_size": 256, "attention_bias": True,
    },
    "bert": SMALL | MULTI_HEAD, "roberta": SMALL | {"type_vocab_size": 1}, "camembert": SMALL, "xlm-roberta": SMALL,
    "distilbert": {"dim": 512, "n_layers": 4, "n_heads": 8, "hidden_dim": 1024, "vocab_size": 5000},
    "modernbert-decoder": SMALL | {"num_hidden_layers": 7, "classifier_bias": True},
    "cohere2": SMALL | {"attention_bias": True},
    "flex_olmo": SMALL | {"num_experts": 4, "num_experts_per_tok": 2, "attention_bias": True},
    "minimax_m2": SMALL | FEW,
    "granitemoeshared": SMALL | FEW | {"shared_intermediate_size": 2048},
    "ministral": SMALL, "ministral3": SMALL, "internlm3": SMALL, "vaultgemma": SMALL,
    "stablelm": SMALL | {"head_dim": 32, "use_qkv_bias": True, "qk_layernorm": True, "use_parallel_residual": True},
    "glm4_moe_lite": {key: value for key, value in SMALL.items() if key != "head_dim"} | {
        "n_routed_experts": 8, "num_experts_per_tok": 2, "moe_intermediate_size": 256, "kv_lora_rank": 64,
        "q_lora_rank": 96, "qk_rope_head_dim": 32, "qk_nope_head_dim": 64, "v_head_dim": 48, "attention_bias": True,
    },
    "codegen": MULTI_HEAD | {"n_embd": 512, "n_layer": 4, "n_head": 8, "rotary_dim": 64},
    "gptj": MULTI_HEAD | {"n_embd": 512, "n_layer": 4, "n_head": 8, "rotary_dim": 64},
}  # fmt: skip
SAME_HEADS: dict[str, dict[str, object]] = {
    "gpt2": {"n_embd": 512, "n_layer": 4, "n_head": 8}, "gpt_neox": SMALL, "opt": SMALL | {"word_embed_proj_dim": 512},
    "gpt_bigcode": {"n_embd": 512, "n_layer": 4, "n_head": 8, "multi_query": False},
    "bloom": {"hidden_size": 512, "n_layer": 4, "n_head": 8}, "mpt": {"d_model": 512, "n_heads": 8, "n_layers": 4},
}  # fmt: skip


def _built(family: str, values: dict[str, object]) -> tuple[float, ModelShape]:
    """Parameters of the model that transformers builds, and the shape of its file."""
    transformers, torch = pytest.importorskip("transformers", minversion="5.0"), pytest.importorskip("torch")
    config = transformers.CONFIG_MAPPING[family](**values)
    kinds = (transformers.AutoModelForSeq2SeqLM, transformers.AutoModelForMaskedLM, transformers.AutoModelForCausalLM)
    auto = next(kind for kind in kinds if type(config) in kind._model_mapping)
    with torch.device("meta"):
        built = auto.from_config(config)
    shape = shape_from_config(json.dumps(config.to_dict()), "c.json")
    return sum(p.numel() for p in built.parameters()), shape


@pytest.mark.parametrize("family", EXACT)
def test_norms_and_biases_of_later_families_are_counted_one_by_one(family):
    params, shape = _built(family, EXACT[family])

    assert shape.params_total == pytest.approx(params, rel=1e-12)


@pytest.mark.parametrize("family", SAME_HEADS)
def test_a_key_that_a_familys_class_does_not_read_changes_no_parameters(family):
    params, shape = _built(family, {**SAME_HEADS[family], **MULTI_HEAD})

    assert shape.params_total == pytest.approx(params, rel=0.001)


@pytest.mark.parametrize(
    ("family", "text"),
    [("qwen3_vl_moe", "qwen3-235b-a22b"), ("mistral3", "mistral-7b"), ("qwen2_5_vl", "qwen2.5-7b")],
)
def test_of_a_model_that_sees_the_language_model_is_read(family, text):
    whole = {"model_type": family, "text_config": CONFIGS[text] | {"model_type": f"{family}_text"}}

    shape = shape_from_config(json.dumps(whole), "c.json")

    assert shape.params_total == find_model(text).params_total
    assert shape.evidence is not None
    assert shape.evidence.what.endswith(", its language model alone)")


@pytest.mark.parametrize(
    ("whole", "part", "known"),
    [
        ("mistral3", "qwen3-8b", "qwen3-8b"),  # what the part says counts
        ("llava_onevision", "qwen2.5-7b", "qwen2.5-7b"),
        ("kimi_k25", "deepseek-v3", "deepseek-v3"),
    ],
)
def test_the_language_model_has_the_family_that_its_part_of_the_file_states(whole, part, known):
    values = {"model_type": whole, "text_config": CONFIGS[part]}

    shape = shape_from_config(json.dumps(values), "c.json")

    assert shape.params_total == find_model(known).params_total
    assert shape.evidence is not None
    assert shape.evidence.what.endswith(", its language model alone)")


@pytest.mark.parametrize(
    ("whole", "part", "message"),
    [
        ("gemma4", "gemma4_text", "c.json: model_type: expected a known architecture, found `gemma4`"),
        (
            "mistral3",
            "gemma4_text",
            "c.json: text_config.model_type: expected a known architecture, found `gemma4_text`",
        ),
        ("grounding-dino", "bert", "c.json: model_type: expected a known architecture, found `grounding-dino`"),
        ("clip", "clip_text_model", "c.json: model_type: expected a known architecture, found `clip`"),
    ],
)
def test_a_whole_without_a_known_language_model_is_refused(whole, part, message):
    values = {"model_type": whole, "text_config": CONFIGS["mistral-7b"] | {"model_type": part}}

    with pytest.raises(InputFileError) as caught:
        shape_from_config(json.dumps(values), "c.json")

    assert caught.value.message == message
    assert "known architectures are llama" in (caught.value.hint or "")


def test_sizes_of_a_whole_that_is_not_known_fill_no_gap_of_its_language_model():
    text = {key: value for key, value in CONFIGS["qwen2.5-7b"].items() if key != "hidden_size"}

    with pytest.raises(InputFileError, match=r"hidden_size: expected a whole number of at least 1, but it is missing"):
        shape_from_config(json.dumps({"model_type": "llava", "hidden_size": 64, "text_config": text}), "c.json")


@pytest.mark.parametrize(("whole", "part", "tied"), [(True, False, True), (False, True, False), (None, True, True)])
def test_whether_the_output_layer_is_the_embedding_is_for_the_whole_model_to_say(whole, part, tied):
    values = {"model_type": "qwen2_5_vl", "text_config": CONFIGS["qwen2.5-7b"] | {"tie_word_embeddings": part}}

    shape = shape_from_config(json.dumps(values | {"tie_word_embeddings": whole}), "c.json")

    assert shape.tied_embeddings is tied


def test_smollm3_without_a_word_on_its_output_layer_has_it_tied():
    config = {
        "model_type": "smollm3", "hidden_size": 2048, "intermediate_size": 11008, "num_hidden_layers": 36,
        "num_attention_heads": 16, "num_key_value_heads": 4, "vocab_size": 128256,
    }  # fmt: skip

    assert shape_from_config(json.dumps(config), "c.json").params_total == find_model("smollm3-3b").params_total


@pytest.mark.parametrize(
    ("name", "change"),
    [("deepseek-v3", {}), ("qwen3-235b-a22b", {"mlp_only_layers": [0, 1, 2]})],
)
def test_a_model_cut_to_fewer_layers_than_its_leading_dense_ones_is_dense(name, change):
    config = CONFIGS[name] | change | {"num_hidden_layers": 2}
    shape = shape_from_config(json.dumps(config), "c.json")

    assert (shape.layers, shape.dense_layers, shape.moe_layers) == (2, 2, 0)
    assert shape.params_active == shape.params_total


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"hidden_size": None}, "c.json: hidden_size: expected a whole number of at least 1, found `null`"),
        ({"hidden_size": "8192"}, 'c.json: hidden_size: expected a whole number of at least 1, found `"8192"`'),
        ({"hidden_size": True}, "c.json: hidden_size: expected a whole number of at least 1, found `true`"),
        ({"num_hidden_layers": 0}, "c.json: num_hidden_layers: expected a whole number of at least 1, found `0`"),
        ({"num_hidden_layers": 1.5}, "c.json: num_hidden_layers: expected a whole number of at least 1, found `1.5`"),
        ({"vocab_size": 10**12}, "c.json: vocab_size: expected a whole number of at least 2, found `1000000000000`"),
        (
            {"num_key_value_heads": 7},
            "c.json: num_key_value_heads: expected a divisor of num_attention_heads (64), found `7`",
        ),
        ({"hidden_size": 8191}, "c.json: hidden_size: expected a multiple of num_attention_heads (64), found `8191`"),
        ({"tie_word_embeddings": "no"}, 'c.json: tie_word_embeddings: expected true or false, found `"no"`'),
        ({"rope_scaling": [1]}, "c.json: rope_scaling: expected an object, found `[1]`"),
        ({"model_type": 3}, "c.json: model_type: expected text, found `3`"),
    ],
)
def test_a_wrong_value_is_named_with_what_was_expected(change, message):
    with pytest.raises(InputFileError) as caught:
        shape_from_config(json.dumps(LLAMA | change), "c.json")

    assert caught.value.message == message
    assert caught.value.exit_code == 3


@pytest.mark.parametrize(("change", "groups"), [({}, 0), ({"topk_method": "group_limited_greedy"}, 8)])
def test_deepseek_v2_limits_groups_only_where_it_says_so(change, groups):
    """Its class takes `greedy` where the file has no method."""
    config = {key: value for key, value in CONFIGS["deepseek-v2-lite"].items() if key != "topk_method"}

    shape = shape_from_config(json.dumps(config | {"n_group": 8, "topk_group": 3} | change), "c.json")

    assert shape.expert_groups == groups


@pytest.mark.parametrize("name", CONFIGS)
def test_a_file_without_its_layers_is_refused_by_every_family(name):
    config = {key: value for key, value in CONFIGS[name].items() if "layer" not in key}
    config["text_config"] = {
        key: value for key, value in config.get("text_config", {}).items() if key != "num_hidden_layers"
    }

    with pytest.raises(InputFileError, match=r"c.json: num_hidden_layers: expected .*, but it is missing"):
        shape_from_config(json.dumps(config), "c.json")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "c.json:1: the file ends in the middle"),
        (json.dumps(LLAMA, indent=1)[:120], "c.json:7: the file ends in the middle"),
        ("not json at all", "c.json:1: not JSON: Expecting value"),
        ("[1, 2]", "c.json: expected a JSON object, found list"),
        ("[" * 100_000, "c.json: expected a JSON object of a model's shape"),
        ('{"hidden_size": ' + "9" * 5000 + "}", "c.json: expected a JSON object of a model's shape"),
        ("{}", "c.json: model_type: expected the name of an architecture, for example `llama`, but it is missing"),
    ],
)
def test_a_file_that_is_no_config_is_refused_in_one_line(text, message):
    with pytest.raises(InputFileError) as caught:
        shape_from_config(text, "c.json")

    assert caught.value.message == message


def test_the_documentation_lists_every_family():
    text = (Path(__file__).parents[3] / "docs" / "model.md").read_text(encoding="utf-8")
    table = text.split("| kind | `model_type` |")[1].split("\n\n")[0]

    assert sorted(re.findall(r"`([^`]+)`", table)) == sorted(FAMILIES)


def test_an_unknown_architecture_lists_the_known_ones():
    with pytest.raises(InputFileError) as caught:
        shape_from_config('{"model_type": "mamba2"}', "c.json")

    assert caught.value.message == "c.json: model_type: expected a known architecture, found `mamba2`"
    assert all(family in (caught.value.hint or "") for family in FAMILIES)
