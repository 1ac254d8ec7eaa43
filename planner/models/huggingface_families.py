"""How each family of models writes its shape into a Hugging Face `config.json`.

To add a family, write a function from `ConfigJson` to `ModelShape` and register its `model_type` in `FAMILIES`.
Defaults for missing keys are those of the family's configuration class in the transformers library; they are in
`DEFAULTS` unless the function has them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from planner.models import huggingface_encoders as encoders
from planner.models import huggingface_hybrids as hybrids
from planner.models import huggingface_mixtures as mixtures
from planner.models.huggingface_decoder import (
    alone,
    decoder,
    heads_alone,
    heads_of,
    window_after_first_layers,
    window_of,
)
from planner.models.huggingface_json import ConfigJson
from planner.models.shape import ModelShape


def _llama(config: ConfigJson) -> ModelShape:
    return decoder(config)


def _mistral(config: ConfigJson) -> ModelShape:
    return decoder(config, **window_of(config))


def _qwen(config: ConfigJson) -> ModelShape:
    return decoder(config, **window_after_first_layers(config))


def _smollm3(config: ConfigJson) -> ModelShape:
    windowed = config.flag("use_sliding_window", False) and config.texts("layer_types")
    return decoder(config, **(window_of(config) if windowed else {}))


def _gemma(config: ConfigJson) -> ModelShape:
    return decoder(config, tied_embeddings=config.flag("tie_word_embeddings", True))


def _gemma2(config: ConfigJson) -> ModelShape:
    return decoder(
        config, tied_embeddings=config.flag("tie_word_embeddings", True), **window_of(config, global_every=2)
    )


def _gemma3(config: ConfigJson) -> ModelShape:
    return decoder(
        config, tied_embeddings=config.flag("tie_word_embeddings", True), **window_of(config, global_every=6)
    )


def _olmo3(config: ConfigJson) -> ModelShape:
    return decoder(config, **window_of(config, global_every=4))


def _cohere(config: ConfigJson) -> ModelShape:
    return decoder(config, tied_embeddings=config.flag("tie_word_embeddings", True))


def _cohere2(config: ConfigJson) -> ModelShape:
    hidden, layers = config.count("hidden_size"), config.count("num_hidden_layers")
    heads = heads_of(config, hidden)
    biases = (heads["heads"] + 2 * heads["kv_heads"]) * heads["head_dim"] + hidden
    return decoder(
        config,
        tied_embeddings=config.flag("tie_word_embeddings", True),
        # one norm in each layer, and the last one
        other_params=(layers + 1) * hidden + layers * biases * config.flag("attention_bias", False),
        **heads,
        **window_of(config, global_every=4),
    )


def _stablelm(config: ConfigJson) -> ModelShape:
    hidden, layers = config.count("hidden_size"), config.count("num_hidden_layers")
    own_keys = {key: value for key, value in config.values.items() if key != "head_dim"}  # its class ignores this one
    heads = heads_of(ConfigJson(config.file, own_keys), hidden)
    queries, keys = (heads[name] * heads["head_dim"] for name in ("heads", "kv_heads"))
    norms = (1 if config.flag("use_parallel_residual", False) else 2) * 2 * hidden
    norms += (queries + keys) * config.flag("qk_layernorm", False)
    biases = (queries + 2 * keys) * config.flag("use_qkv_bias", False)
    return decoder(config, other_params=layers * (norms + biases) + 2 * hidden, **heads)


def _phi(config: ConfigJson) -> ModelShape:
    return decoder(config, gated_mlp=False, biases=True)


def _nemotron(config: ConfigJson) -> ModelShape:
    return decoder(config, gated_mlp=False)


def _starcoder2(config: ConfigJson) -> ModelShape:
    tied = config.flag("tie_word_embeddings", True)
    biases = config.flag("use_bias", True)
    return decoder(config, gated_mlp=False, biases=biases, tied_embeddings=tied, **window_of(config))


def _gpt2(config: ConfigJson) -> ModelShape:
    alone(config)
    hidden = config.count("n_embd")
    positions = config.count("n_positions", "n_ctx")
    return decoder(
        config,
        ffn_hidden=config.opt_count("n_inner") or 4 * hidden,
        gated_mlp=False,
        context=positions,
        tied_embeddings=config.flag("tie_word_embeddings", True),
        learned_positions=positions,
        biases=True,
        **(heads_alone(config, hidden) | ({"kv_heads": 1} if config.flag("multi_query", False) else {})),
    )


def _gptj(config: ConfigJson) -> ModelShape:
    hidden = config.count("n_embd")
    ffn, layers, vocab = config.opt_count("n_inner") or 4 * hidden, config.count("n_layer"), config.count("vocab_size")
    return decoder(
        config,
        ffn_hidden=ffn,
        gated_mlp=False,
        # a norm in each layer, biases in the feed-forward blocks and in the output layer, and the last norm
        other_params=layers * (3 * hidden + ffn) + 2 * hidden + vocab,
        **heads_alone(config, hidden),
    )


def _gpt_neox(config: ConfigJson) -> ModelShape:
    heads = heads_alone(config, config.count("hidden_size"))
    return decoder(config, gated_mlp=False, biases=config.flag("attention_bias", True), **heads)


def _opt(config: ConfigJson) -> ModelShape:
    hidden, positions = config.count("hidden_size"), config.count("max_position_embeddings")
    if (config.opt_count("word_embed_proj_dim") or hidden) != hidden:
        raise config.fail("word_embed_proj_dim", f"the hidden_size ({hidden})")
    return decoder(
        config,
        ffn_hidden=config.count("ffn_dim"),
        gated_mlp=False,
        context=positions,
        tied_embeddings=config.flag("tie_word_embeddings", True),
        learned_positions=positions + 2,  # the table has two rows for padding
        biases=config.flag("enable_bias", True),
        **heads_alone(config, hidden),
    )


def _bloom(config: ConfigJson) -> ModelShape:
    hidden = config.count("hidden_size", "n_embed")
    return decoder(
        config,
        ffn_hidden=4 * hidden,
        gated_mlp=False,
        context=config.opt_count("seq_length") or 2048,
        tied_embeddings=config.flag("tie_word_embeddings", True),
        biases=True,
        **heads_alone(config, hidden),
    )


def _mpt(config: ConfigJson) -> ModelShape:
    hidden, longest, attention = config.count("d_model"), config.count("max_seq_len"), config.inner("attn_config")
    heads = heads_alone(config, hidden)
    if attention.text("attn_type") == "multiquery_attention":
        heads["kv_heads"] = 1
    elif attention.opt_count("kv_n_heads"):
        heads["kv_heads"] = attention.count("kv_n_heads")
    learned = config.flag("learned_pos_emb", True) and not attention.flag("alibi", True)
    return decoder(
        config,
        ffn_hidden=(config.opt_count("expansion_ratio") or 4) * hidden,
        gated_mlp=False,
        context=longest,
        tied_embeddings=config.flag("tie_word_embeddings", True),
        learned_positions=longest if learned else 0,
        biases=not config.flag("no_bias", True),
        **heads,
    )


def _falcon(config: ConfigJson) -> ModelShape:
    hidden = config.count("hidden_size")
    heads = heads_alone(config, hidden)
    if config.flag("new_decoder_architecture", False):
        heads["kv_heads"] = config.opt_count("num_kv_heads", "n_head_kv") or heads["heads"]
    else:
        heads["kv_heads"] = 1 if config.flag("multi_query", True) else heads["heads"]
    return decoder(
        config,
        ffn_hidden=config.opt_count("ffn_hidden_size") or 4 * hidden,
        gated_mlp=False,
        context=2048,
        biases=config.flag("bias", False),
        tied_embeddings=config.flag("tie_word_embeddings", True),
        **heads,
    )


FAMILIES: dict[str, Callable[[ConfigJson], ModelShape]] = {
    "llama": _llama,
    "llama4_text": mixtures.llama4,
    "mistral": _mistral,
    "ministral": _mistral,
    "ministral3": _mistral,
    "mixtral": mixtures.mixtral,
    "qwen2": _qwen,
    "qwen2_moe": mixtures.qwen_moe,
    "qwen3": _qwen,
    "qwen3_moe": mixtures.qwen_moe,
    "qwen3_next": hybrids.qwen_next_moe,
    "qwen3_5_text": hybrids.qwen_next,
    "qwen3_5_moe_text": hybrids.qwen_next_moe,
    "deepseek_v2": mixtures.deepseek,
    "deepseek_v3": mixtures.deepseek,
    "glm4_moe_lite": mixtures.glm_lite,
    "kimi_k2": mixtures.deepseek,
    "mistral4": mixtures.deepseek,
    "deepseek": mixtures.glm,
    "bailing_moe": mixtures.bailing,
    "bailing_moe_v2": mixtures.bailing,
    "hunyuan_v1_moe": mixtures.hunyuan,
    "gpt2": _gpt2,
    "gpt_bigcode": _gpt2,
    "gptj": _gptj,
    "codegen": _gptj,
    "gpt_neox": _gpt_neox,
    "gpt_oss": mixtures.gpt_oss,
    "bert": encoders.bert,
    "roberta": encoders.bert,
    "camembert": encoders.bert,
    "xlm-roberta": encoders.bert,
    "modernbert": encoders.modernbert,
    "modernbert-decoder": encoders.modernbert_decoder,
    "t5": encoders.t5,
    "mt5": encoders.t5,
    "umt5": encoders.umt5,
    "distilbert": encoders.distilbert,
    "opt": _opt,
    "bloom": _bloom,
    "mpt": _mpt,
    "falcon": _falcon,
    "falcon_h1": hybrids.falcon_h1,
    "jamba": hybrids.jamba,
    "kimi_linear": hybrids.kimi_linear,
    "lfm2": hybrids.lfm2,
    "lfm2_moe": hybrids.lfm2_moe,
    "bamba": hybrids.bamba,
    "gemma": _gemma,
    "gemma2": _gemma2,
    "vaultgemma": _gemma2,
    "gemma3_text": _gemma3,
    "olmo": _llama,
    "olmo2": _llama,
    "olmo3": _olmo3,
    "olmoe": mixtures.olmoe,
    "flex_olmo": mixtures.flex_olmo,
    "phi": _phi,
    "phi3": _mistral,
    "nemotron": _nemotron,
    "nemotron_h": hybrids.nemotron_h,
    "starcoder2": _starcoder2,
    "cohere": _cohere,
    "cohere2": _cohere2,
    "stablelm": _stablelm,
    "internlm2": _llama,
    "internlm3": _llama,
    "baichuan": _llama,
    "mimo": _qwen,
    "smollm3": _smollm3,
    "glm": _llama,
    "glm4": _llama,
    "glm4_moe": mixtures.glm,
    "dots1": mixtures.glm,
    "ernie4_5": _llama,
    "ernie4_5_moe": mixtures.ernie,
    "seed_oss": _llama,
    "hunyuan_v1_dense": _llama,
    "granite": _llama,
    "granitemoe": mixtures.mixtral,
    "granitemoeshared": mixtures.granite_moe_shared,
    "minimax_m2": mixtures.minimax,
    "granitemoehybrid": hybrids.granite_hybrid,
    "phimoe": mixtures.mixtral,
    "exaone4": _olmo3,
    "apertus": _nemotron,
    "arcee": _nemotron,
}
"""Functions that build a shape, by the `model_type` of the file."""

_DELTA: dict[str, Any] = {
    "head_dim": 256, "linear_num_key_heads": 16, "linear_key_head_dim": 128, "linear_num_value_heads": 32,
    "linear_value_head_dim": 128,
}  # fmt: skip
_MAMBA: dict[str, Any] = {
    "num_key_value_heads": 8, "mamba_n_heads": 128, "mamba_n_groups": 1, "mamba_d_state": 256,
}  # fmt: skip
DEFAULTS: dict[str, dict[str, Any]] = {
    "llama4_text": {"num_key_value_heads": 8},
    "mistral": {"num_key_value_heads": 8, "sliding_window": 4096},
    "ministral": {"num_key_value_heads": 8, "sliding_window": 4096},
    "ministral3": {"num_key_value_heads": 8, "head_dim": 128},
    "mixtral": {"num_key_value_heads": 8},
    "qwen2_moe": {"shared_expert_intermediate_size": 5632},
    "qwen3": {"head_dim": 128},
    "qwen3_moe": {"num_key_value_heads": 4},
    "qwen3_next": _DELTA | {"num_key_value_heads": 2, "shared_expert_intermediate_size": 512},
    "qwen3_5_text": _DELTA | {"num_key_value_heads": 4},
    "qwen3_5_moe_text": _DELTA | {"num_key_value_heads": 2, "shared_expert_intermediate_size": 512},
    "nemotron_h": {
        "num_key_value_heads": 8, "head_dim": 128, "mamba_num_heads": 128, "mamba_head_dim": 64, "n_groups": 8,
        "ssm_state_size": 128,
    },
    "falcon_h1": _MAMBA | {"mamba_d_ssm": 1024},
    "bamba": _MAMBA,
    "granitemoehybrid": {
        "mamba_n_heads": 128, "mamba_n_groups": 1, "mamba_d_state": 256, "shared_intermediate_size": 1024,
        "num_local_experts": 8, "num_experts_per_tok": 2,
    },
    "deepseek_v2": {"n_shared_experts": 2, "q_lora_rank": 1536, "topk_method": "greedy"},
    "deepseek_v3": {
        "n_shared_experts": 1, "q_lora_rank": 1536, "first_k_dense_replace": 3, "n_group": 8, "topk_group": 4,
    },
    "gpt_bigcode": {"multi_query": True},
    "gpt_oss": {"num_key_value_heads": 8, "head_dim": 64, "sliding_window": 128},
    "gemma": {"head_dim": 256},
    "gemma2": {"num_key_value_heads": 4, "head_dim": 256, "sliding_window": 4096},
    "vaultgemma": {"num_key_value_heads": 4, "head_dim": 256, "sliding_window": 4096},
    "gemma3_text": {
        "num_attention_heads": 8, "num_key_value_heads": 4, "head_dim": 256, "vocab_size": 262_208,
        "sliding_window": 4096,
    },
    "starcoder2": {"num_key_value_heads": 2},
    "cohere2": {"sliding_window": 4096},
    "internlm3": {"num_key_value_heads": 2, "head_dim": 128},
    "smollm3": {"num_key_value_heads": 4, "tie_word_embeddings": True},
    "olmo3": {"sliding_window": 4096},
    "exaone4": {"sliding_window": 4096},
    "glm": {"num_key_value_heads": 2, "head_dim": 128},
    "glm4": {"num_key_value_heads": 2, "head_dim": 128},
    "glm4_moe": {"num_key_value_heads": 8, "n_shared_experts": 1, "first_k_dense_replace": 1},
    "ernie4_5": {"num_key_value_heads": 2, "head_dim": 128, "tie_word_embeddings": True},
    "ernie4_5_moe": {
        "num_key_value_heads": 4, "tie_word_embeddings": True, "moe_num_shared_experts": 2, "moe_layer_start_index": 1,
    },
    "seed_oss": {"num_key_value_heads": 8, "head_dim": 128},
    "minimax_m2": {"num_key_value_heads": 8, "head_dim": 128},
    "jamba": {"num_key_value_heads": 8, "num_experts": 16, "num_experts_per_tok": 2},
    "lfm2": {"num_key_value_heads": 8},
    "lfm2_moe": {"num_key_value_heads": 8, "num_dense_layers": 2},
    "glm4_moe_lite": {"n_shared_experts": 1, "q_lora_rank": 768},
    "mistral4": {"n_shared_experts": 1, "q_lora_rank": 1024},
    "phimoe": {"num_key_value_heads": 8},
}  # fmt: skip
"""Defaults of a family's configuration class in transformers (5.24) for missing keys, where they differ from Llama's. A
missing key is not the same as null: `"q_lora_rank": null` means that queries are not compressed."""

OTHER_NAMES = {
    "RefinedWeb": "falcon", "RefinedWebModel": "falcon", "gemma3": "gemma3_text", "llama4": "llama4_text",
    "mistral3": "mistral", "qwen2_vl": "qwen2", "qwen2_5_vl": "qwen2", "qwen3_vl": "qwen3", "qwen3_vl_moe": "qwen3_moe",
    "qwen3_5": "qwen3_5_text", "qwen3_5_moe": "qwen3_5_moe_text", "nemotron_h_omni": "nemotron_h",
}  # fmt: skip
"""Family by older spelling of a `model_type`, or by multimodal model whose text part is under `text_config`."""
