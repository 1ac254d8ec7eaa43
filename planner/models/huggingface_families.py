"""How each family of models writes its shape into a Hugging Face `config.json`.

To add a family: a function from `ConfigJson` to `ModelShape`, and its `model_type` in `FAMILIES`. Defaults for missing
keys are those of the family's configuration class in the transformers library (`DEFAULTS`, where no function has them).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from planner.models.huggingface_json import ConfigJson
from planner.models.shape import ModelShape

DEFAULT_CONTEXT = 4096
"""Assumed pre-training length where the file gives only the longest sequence that the model accepts: that of Llama 2
(Touvron et al., arXiv 2307.09288, table 1); longer contexts are mostly trained in a short last phase."""


def _context(config: ConfigJson) -> int:
    """Sequence length of pre-training as far as the file states it; its long-context keys describe later extensions."""
    rope = config.inner("rope_parameters")  # transformers 5 writes this and no `rope_scaling`
    told = (config.inner("rope_scaling"), rope, rope.inner("full_attention"), config)
    original = next(filter(None, (place.opt_count("original_max_position_embeddings") for place in told)), None)
    longest = config.opt_count("max_position_embeddings", "n_positions", "max_seq_len", "seq_length")
    return original or min(longest or DEFAULT_CONTEXT, DEFAULT_CONTEXT)


def _heads(config: ConfigJson, hidden: int) -> dict[str, int]:
    heads = config.count("num_attention_heads", "n_head", "n_heads")
    kv_heads = config.opt_count("num_key_value_heads", "num_kv_heads") or heads
    if heads % kv_heads:
        raise config.fail("num_key_value_heads", f"a divisor of num_attention_heads ({heads})")
    head_dim = config.opt_count("head_dim")
    if head_dim is None and hidden % heads:
        raise config.fail("hidden_size", f"a multiple of num_attention_heads ({heads})")
    return {"heads": heads, "kv_heads": kv_heads, "head_dim": head_dim or hidden // heads}


def _full_every(layer_types: tuple[str, ...]) -> int | None:
    """Of how many layers one sees everything: as they stand, else by their number; None where none does."""
    full = [number for number, kind in enumerate(layer_types, start=1) if kind == "full_attention"]
    if not full:
        return None
    as_they_stand = full == list(range(full[0], len(layer_types) + 1, full[0]))
    return full[0] if as_they_stand else round(len(layer_types) / len(full))


def _window(config: ConfigJson, every: int = 1) -> dict[str, int]:
    """Local attention, every n-th layer global: by `layer_types`, `sliding_window_pattern` or the family's code."""
    window = config.opt_count("sliding_window")
    layer_types = config.texts("layer_types")
    if window is None or not config.flag("use_sliding_window", True):
        return {}
    if layer_types:
        period = _full_every(layer_types)
        return {} if period == 1 else {"sliding_window": window, "global_attention_every": period or 1}
    return {"sliding_window": window, "global_attention_every": config.opt_count("sliding_window_pattern") or every}


def _experts(config: ConfigJson, experts: tuple[str, ...], expert_ffn: str) -> dict[str, int]:
    count, top_k = config.count(*experts), config.count("num_experts_per_tok", "experts_per_token")
    if top_k > count:
        raise config.fail("num_experts_per_tok", f"at most {experts[0]} ({count})")
    return {"experts": count, "top_k": top_k, "expert_ffn": config.count(expert_ffn)}


def _decoder(config: ConfigJson, **fields: Any) -> ModelShape:
    """A decoder with the key names that Llama set; `fields` replaces what a family does differently."""
    hidden = config.count("hidden_size", "n_embd", "n_embed", "d_model")
    shape: dict[str, Any] = {
        "name": "config",
        "kind": "decoder",
        "layers": config.count("num_hidden_layers", "n_layer", "n_layers"),
        "hidden": hidden,
        "gated_mlp": True,
        "vocab": config.count("vocab_size", low=2),
        "context": _context(config),
        "tied_embeddings": config.flag("tie_word_embeddings", False),
    }
    if "heads" not in fields:
        shape |= _heads(config, hidden)
    if "ffn_hidden" not in fields:
        shape["ffn_hidden"] = config.count("intermediate_size")
    return ModelShape(**(shape | fields))


def _llama(config: ConfigJson) -> ModelShape:
    return _decoder(config)


def _mistral(config: ConfigJson) -> ModelShape:
    return _decoder(config, **_window(config))


def _qwen(config: ConfigJson) -> ModelShape:
    return _decoder(config, **(_window(config) if config.flag("use_sliding_window", False) else {}))


def _gemma(config: ConfigJson) -> ModelShape:
    return _decoder(config, tied_embeddings=config.flag("tie_word_embeddings", True))


def _gemma2(config: ConfigJson) -> ModelShape:
    return _decoder(config, tied_embeddings=config.flag("tie_word_embeddings", True), **_window(config, every=2))


def _gemma3(config: ConfigJson) -> ModelShape:
    return _decoder(config, tied_embeddings=config.flag("tie_word_embeddings", True), **_window(config, every=6))


def _cohere(config: ConfigJson) -> ModelShape:
    return _decoder(config, tied_embeddings=config.flag("tie_word_embeddings", True))


def _phi(config: ConfigJson) -> ModelShape:
    return _decoder(config, gated_mlp=False, biases=True)


def _nemotron(config: ConfigJson) -> ModelShape:
    return _decoder(config, gated_mlp=False)


def _starcoder2(config: ConfigJson) -> ModelShape:
    tied = config.flag("tie_word_embeddings", True)
    return _decoder(config, gated_mlp=False, biases=config.flag("use_bias", True), tied_embeddings=tied)


def _mixtral(config: ConfigJson) -> ModelShape:
    experts = _experts(config, ("num_local_experts",), "intermediate_size")
    return _decoder(config, ffn_hidden=0, **_window(config), **experts)


def _gpt_oss(config: ConfigJson) -> ModelShape:
    experts = _experts(config, ("num_local_experts",), "intermediate_size")
    return _decoder(config, ffn_hidden=0, biases=True, **_window(config, every=2), **experts)


def _leading_dense(config: ConfigJson) -> int:
    """Number of dense layers named in `mlp_only_layers`, which must be the first ones.

    Those that a shortened model no longer has are named in vain: transformers asks of each layer that it builds.
    """
    layers = config.count("num_hidden_layers")
    named = sorted(number for number in set(config.whole_numbers("mlp_only_layers")) if number < layers)
    if named != list(range(len(named))):
        raise config.fail("mlp_only_layers", "the first layers only")
    return len(named)


def _qwen_moe(config: ConfigJson) -> ModelShape:
    experts = _experts(config, ("num_experts", "num_local_experts"), "moe_intermediate_size")
    dense = _leading_dense(config)
    every = config.opt_count("decoder_sparse_step") or 1
    shared = config.opt_count("shared_expert_intermediate_size", low=0) or 0
    if shared % experts["expert_ffn"]:
        raise config.fail("shared_expert_intermediate_size", "a multiple of moe_intermediate_size")
    return _decoder(
        config,
        ffn_hidden=config.count("intermediate_size") if dense or every > 1 else 0,
        shared_experts=shared // experts["expert_ffn"],
        dense_layers=dense,
        moe_every=every,
        **experts,
    )


def _llama4(config: ConfigJson) -> ModelShape:
    experts = _experts(config, ("num_local_experts",), "intermediate_size")
    every = config.opt_count("interleave_moe_layer_step") or 1
    dense = config.count("intermediate_size_mlp") if every > 1 else 0
    return _decoder(config, ffn_hidden=dense, shared_experts=1, moe_every=every, **experts)


def _groups(config: ConfigJson, experts: int) -> dict[str, int]:
    """Groups of experts of which a token sees some only; `greedy` sees all of them, as does one group."""
    groups, seen = config.opt_count("n_group") or 1, config.opt_count("topk_group") or 1
    if config.text("topk_method") == "greedy" or groups == 1:
        return {}
    if experts % groups:
        raise config.fail("n_group", f"a divisor of n_routed_experts ({experts})")
    if seen > groups:
        raise config.fail("topk_group", f"at most n_group ({groups})")
    return {} if seen == groups else {"expert_groups": groups, "token_groups": seen}


def _deepseek(config: ConfigJson) -> ModelShape:
    rope = config.count("qk_rope_head_dim")
    heads = config.count("num_attention_heads")
    experts = _experts(config, ("n_routed_experts",), "moe_intermediate_size")
    return _decoder(
        config,
        heads=heads,
        kv_heads=heads,
        head_dim=config.count("qk_nope_head_dim") + rope,
        q_lora_rank=config.opt_count("q_lora_rank"),
        kv_lora_rank=config.count("kv_lora_rank"),
        rope_head_dim=rope,
        v_head_dim=config.count("v_head_dim"),
        shared_experts=config.opt_count("n_shared_experts", low=0) or 0,
        # As in transformers, a model with fewer layers than that has dense ones only.
        dense_layers=min(config.opt_count("first_k_dense_replace", low=0) or 0, config.count("num_hidden_layers")),
        moe_every=config.opt_count("moe_layer_freq") or 1,
        **experts,
        **_groups(config, experts["experts"]),
    )


def _gpt2(config: ConfigJson) -> ModelShape:
    hidden = config.count("n_embd")
    positions = config.count("n_positions", "n_ctx")
    return _decoder(
        config,
        ffn_hidden=config.opt_count("n_inner") or 4 * hidden,
        gated_mlp=False,
        context=positions,
        tied_embeddings=config.flag("tie_word_embeddings", True),
        learned_positions=positions,
        biases=True,
        **(_heads(config, hidden) | ({"kv_heads": 1} if config.flag("multi_query", False) else {})),
    )


def _gptj(config: ConfigJson) -> ModelShape:
    hidden = config.count("n_embd")
    return _decoder(config, ffn_hidden=config.opt_count("n_inner") or 4 * hidden, gated_mlp=False)


def _gpt_neox(config: ConfigJson) -> ModelShape:
    return _decoder(config, gated_mlp=False, biases=config.flag("attention_bias", True))


def _bert(config: ConfigJson) -> ModelShape:
    positions = config.count("max_position_embeddings")
    return _decoder(
        config,
        kind="encoder",
        head_ratio=0.15,  # masked language modelling (arXiv 1810.04805)
        gated_mlp=False,
        context=min(positions, 512),  # RoBERTa's table has two rows that no token uses
        tied_embeddings=config.flag("tie_word_embeddings", True),
        learned_positions=positions,
        biases=True,
    )


def _distilbert(config: ConfigJson) -> ModelShape:
    names = {"hidden_size": "dim", "num_hidden_layers": "n_layers", "num_attention_heads": "n_heads",
             "intermediate_size": "hidden_dim"}  # fmt: skip
    return _bert(
        ConfigJson(config.file, dict(config.values) | {name: config.count(own) for name, own in names.items()})
    )


def _opt(config: ConfigJson) -> ModelShape:
    hidden, positions = config.count("hidden_size"), config.count("max_position_embeddings")
    if (config.opt_count("word_embed_proj_dim") or hidden) != hidden:
        raise config.fail("word_embed_proj_dim", f"the hidden_size ({hidden})")
    return _decoder(
        config,
        ffn_hidden=config.count("ffn_dim"),
        gated_mlp=False,
        context=positions,
        tied_embeddings=config.flag("tie_word_embeddings", True),
        learned_positions=positions + 2,  # the table keeps two rows for padding
        biases=config.flag("enable_bias", True),
    )


def _bloom(config: ConfigJson) -> ModelShape:
    hidden = config.count("hidden_size", "n_embed")
    return _decoder(
        config,
        ffn_hidden=4 * hidden,
        gated_mlp=False,
        context=config.opt_count("seq_length") or 2048,
        tied_embeddings=config.flag("tie_word_embeddings", True),
        biases=True,
        **_heads(config, hidden),
    )


def _mpt(config: ConfigJson) -> ModelShape:
    hidden, longest, attention = config.count("d_model"), config.count("max_seq_len"), config.inner("attn_config")
    heads = _heads(config, hidden)
    if attention.text("attn_type") == "multiquery_attention":
        heads["kv_heads"] = 1
    elif attention.opt_count("kv_n_heads"):
        heads["kv_heads"] = attention.count("kv_n_heads")
    learned = config.flag("learned_pos_emb", True) and not attention.flag("alibi", True)
    return _decoder(
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
    heads = _heads(config, hidden)
    if config.flag("new_decoder_architecture", False):
        heads["kv_heads"] = config.opt_count("num_kv_heads", "n_head_kv") or heads["heads"]
    else:
        heads["kv_heads"] = 1 if config.flag("multi_query", True) else heads["heads"]
    return _decoder(
        config,
        ffn_hidden=config.opt_count("ffn_hidden_size") or 4 * hidden,
        gated_mlp=False,
        context=2048,
        biases=config.flag("bias", False),
        **heads,
    )


FAMILIES: dict[str, Callable[[ConfigJson], ModelShape]] = {
    "llama": _llama,
    "llama4_text": _llama4,
    "mistral": _mistral,
    "mixtral": _mixtral,
    "qwen2": _qwen,
    "qwen2_moe": _qwen_moe,
    "qwen3": _qwen,
    "qwen3_moe": _qwen_moe,
    "deepseek_v2": _deepseek,
    "deepseek_v3": _deepseek,
    "kimi_k2": _deepseek,
    "gpt2": _gpt2,
    "gpt_bigcode": _gpt2,
    "gptj": _gptj,
    "gpt_neox": _gpt_neox,
    "gpt_oss": _gpt_oss,
    "bert": _bert,
    "roberta": _bert,
    "camembert": _bert,
    "xlm-roberta": _bert,
    "distilbert": _distilbert,
    "opt": _opt,
    "bloom": _bloom,
    "mpt": _mpt,
    "falcon": _falcon,
    "gemma": _gemma,
    "gemma2": _gemma2,
    "gemma3_text": _gemma3,
    "olmo": _llama,
    "olmo2": _llama,
    "phi": _phi,
    "phi3": _mistral,
    "nemotron": _nemotron,
    "starcoder2": _starcoder2,
    "cohere": _cohere,
    "smollm3": _llama,
}
"""Builder of a shape by the `model_type` of the file."""

DEFAULTS: dict[str, dict[str, Any]] = {
    "llama4_text": {"num_key_value_heads": 8},
    "mistral": {"num_key_value_heads": 8, "sliding_window": 4096},
    "mixtral": {"num_key_value_heads": 8},
    "qwen2_moe": {"shared_expert_intermediate_size": 5632},
    "qwen3": {"head_dim": 128},
    "qwen3_moe": {"num_key_value_heads": 4},
    "deepseek_v2": {"n_shared_experts": 2, "q_lora_rank": 1536, "topk_method": "greedy"},
    "deepseek_v3": {
        "n_shared_experts": 1, "q_lora_rank": 1536, "first_k_dense_replace": 3, "n_group": 8, "topk_group": 4,
    },
    "gpt_bigcode": {"multi_query": True},
    "gpt_oss": {"num_key_value_heads": 8, "head_dim": 64, "sliding_window": 128},
    "gemma": {"head_dim": 256},
    "gemma2": {"num_key_value_heads": 4, "head_dim": 256, "sliding_window": 4096},
    "gemma3_text": {
        "num_attention_heads": 8, "num_key_value_heads": 4, "head_dim": 256, "vocab_size": 262_208,
        "sliding_window": 4096,
    },
    "starcoder2": {"num_key_value_heads": 2},
    "smollm3": {"num_key_value_heads": 4, "tie_word_embeddings": True},
}  # fmt: skip
"""What a family's configuration class in transformers (5.24) takes for a key that a file leaves out, where Llama's
takes something else. Left out is not null: `"q_lora_rank": null` says that queries are not compressed."""

OTHER_NAMES = {"RefinedWeb": "falcon", "RefinedWebModel": "falcon", "gemma3": "gemma3_text", "llama4": "llama4_text"}
"""Older spellings of a `model_type`, and multimodal models whose text part is under `text_config`."""
