"""The part of a Hugging Face `config.json` that most model families share: a decoder with Llama's key names."""

from __future__ import annotations

from typing import Any

from planner.models.huggingface_json import ConfigJson
from planner.models.shape import ModelShape

DEFAULT_CONTEXT = 4096
"""Assumed sequence length of pre-training if the file gives only the longest sequence that the model accepts: the
length of Llama 2 (Touvron et al., arXiv 2307.09288, table 1). Longer contexts are mostly trained in a short last
phase."""

MTP_KEYS = ("num_nextn_predict_layers", "num_mtp_layers", "mtp_num_hidden_layers")
"""Keys for the number of multi-token prediction modules: of DeepSeek and its relatives, of transformers, of Qwen."""


def context_of(config: ConfigJson) -> int:
    """Sequence length of pre-training, as far as the file states it; long-context keys describe later extensions."""
    rope = config.inner("rope_parameters")  # transformers 5 writes this instead of `rope_scaling`
    places = (config.inner("rope_scaling"), rope, rope.inner("full_attention"), config)
    trained_length = next(filter(None, (place.opt_count("original_max_position_embeddings") for place in places)), None)
    longest = config.opt_count("max_position_embeddings", "n_positions", "max_seq_len", "seq_length")
    return trained_length or min(longest or DEFAULT_CONTEXT, DEFAULT_CONTEXT)


def heads_of(config: ConfigJson, hidden: int) -> dict[str, int]:
    """Number of heads, number of key and value heads, and size of a head."""
    heads = config.count("num_attention_heads", "n_head", "n_heads")
    kv_heads = config.opt_count("num_key_value_heads", "num_kv_heads") or heads
    if heads % kv_heads:
        raise config.fail("num_key_value_heads", f"a divisor of num_attention_heads ({heads})")
    head_dim = config.opt_count("head_dim")
    if head_dim is None and hidden % heads:
        raise config.fail("hidden_size", f"a multiple of num_attention_heads ({heads})")
    return {"heads": heads, "kv_heads": kv_heads, "head_dim": head_dim or hidden // heads}


def alone(config: ConfigJson) -> None:
    """Refuse the decoder of a further model, which attends to that model's output in every layer.

    Raises:
        InputFileError: the file asks for cross-attention.
    """
    if config.flag("add_cross_attention", False):
        raise config.fail("add_cross_attention", "false, as a model by itself")


def heads_alone(config: ConfigJson, hidden: int) -> dict[str, int]:
    """Heads of a family whose classes in transformers ignore keys for the size of a head and for grouped queries."""
    ignored = ("head_dim", "num_key_value_heads", "num_kv_heads")
    return heads_of(
        ConfigJson(config.file, {key: value for key, value in config.values.items() if key not in ignored}), hidden
    )


def _global_layers(layer_types: tuple[str, ...]) -> dict[str, int]:
    """Which layers have full attention: every n-th, or their number if they are not regular; empty if all have."""
    full_layers = [number for number, kind in enumerate(layer_types, start=1) if kind == "full_attention"]
    if not full_layers:
        return {"global_attention_every": 1}
    period = full_layers[0]
    if full_layers != list(range(period, len(layer_types) + 1, period)):
        return {"global_attention_layers": len(full_layers)}
    return {"global_attention_every": period} if period > 1 else {}


def window_of(config: ConfigJson, global_every: int = 1) -> dict[str, int]:
    """Local attention, every n-th layer global, from `layer_types`, `sliding_window_pattern` or the family's code."""
    window = config.opt_count("sliding_window")
    layer_types = config.texts("layer_types")
    if window is None or not config.flag("use_sliding_window", True):
        return {}
    if layer_types:
        global_layers = _global_layers(layer_types)
        return {"sliding_window": window, **global_layers} if global_layers else {}
    return {
        "sliding_window": window,
        "global_attention_every": config.opt_count("sliding_window_pattern") or global_every,
    }


def window_after_first_layers(config: ConfigJson) -> dict[str, int]:
    """Local attention of Qwen 2 and 3: none by default, or in all layers after the first `max_window_layers`."""
    if not config.flag("use_sliding_window", False):
        return {}
    if config.texts("layer_types"):
        return window_of(config)
    first = config.opt_count("max_window_layers", low=0)
    global_layers = min(28 if first is None else first, config.count("num_hidden_layers"))
    if global_layers == config.count("num_hidden_layers"):
        return {}
    return {"sliding_window": config.opt_count("sliding_window") or 4096, "global_attention_layers": global_layers}


def decoder(config: ConfigJson, **fields: Any) -> ModelShape:
    """A decoder with the key names of Llama; `fields` override properties in which a family differs."""
    hidden = config.count("hidden_size", "n_embd", "n_embed", "d_model")
    shape: dict[str, Any] = {
        "name": "config",
        "kind": "decoder",
        "hidden": hidden,
        "gated_mlp": True,
        "vocab": config.count("vocab_size", low=2),
        "context": context_of(config),
        "tied_embeddings": config.flag("tie_word_embeddings", False),
    }
    if "mtp_layers" not in fields:
        shape["mtp_layers"] = config.opt_count(*MTP_KEYS, low=0) or 0
    if "layers" not in fields:
        shape["layers"] = config.count("num_hidden_layers", "n_layer", "n_layers")
    if "heads" not in fields:
        shape |= heads_of(config, hidden)
    if "ffn_hidden" not in fields:
        shape["ffn_hidden"] = config.count("intermediate_size")
    return ModelShape(**(shape | fields))
