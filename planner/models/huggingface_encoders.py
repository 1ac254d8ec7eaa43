"""How encoders, and encoders with a decoder, write their shape into a Hugging Face `config.json`."""

from __future__ import annotations

from dataclasses import replace

from planner.models.huggingface_decoder import alone, decoder, heads_alone
from planner.models.huggingface_json import ConfigJson
from planner.models.shape import ModelShape

BERT_CONTEXT = 512
"""Longest sequences in the training of BERT and of T5 (arXiv 1810.04805, section A.2; 1910.10683, section 3.1.2)."""
MODERNBERT_CONTEXT = 1024
"""Length of the sequences in the first 1.7 of ModernBERT's 2 trillion tokens (arXiv 2412.13663, section 2.2)."""


def bert(config: ConfigJson) -> ModelShape:
    """BERT, RoBERTa and their relatives."""
    return _bert(config, token_types=config.opt_count("type_vocab_size", low=0))


def _bert(config: ConfigJson, token_types: int | None) -> ModelShape:
    hidden, layers, ffn = (config.count(key) for key in ("hidden_size", "num_hidden_layers", "intermediate_size"))
    positions, vocab = config.count("max_position_embeddings"), config.count("vocab_size", low=2)
    alone(config)
    types = 2 if token_types is None else token_types
    ends = (types + 2) * hidden + hidden * (hidden + 3) + vocab  # with a product and a norm before the output layer
    return decoder(
        config,
        kind="encoder",
        head_ratio=0.15,  # masked language modelling (arXiv 1810.04805)
        gated_mlp=False,
        context=min(positions, BERT_CONTEXT),  # RoBERTa's table has two unused rows
        tied_embeddings=config.flag("tie_word_embeddings", True),
        learned_positions=positions,
        biases=True,
        other_params=layers * (9 * hidden + ffn) + ends,
        **heads_alone(config, hidden),
    )


def distilbert(config: ConfigJson) -> ModelShape:
    """DistilBERT: BERT with other key names, and without token types."""
    names = {"hidden_size": "dim", "num_hidden_layers": "n_layers", "num_attention_heads": "n_heads",
             "intermediate_size": "hidden_dim"}  # fmt: skip
    renamed = dict(config.values) | {name: config.count(own) for name, own in names.items()}
    return _bert(ConfigJson(config.file, renamed), token_types=0)


def _global_layers(config: ConfigJson, layers: int) -> int:
    """Layers of ModernBERT that attend to the whole sequence: the first, and every n-th after it."""
    listed = config.texts("layer_types")
    if not listed:
        return -(-layers // (config.opt_count("global_attn_every_n_layers") or 3))
    if len(listed) != layers or not set(listed) <= {"full_attention", "sliding_attention"}:
        raise config.fail("layer_types", f"`full_attention` or `sliding_attention` for each of {layers} layers")
    return listed.count("full_attention")


def modernbert(config: ConfigJson) -> ModelShape:
    """ModernBERT: local attention in most layers, gated feed-forward blocks, no biases."""
    hidden, layers, ffn = (config.count(key) for key in ("hidden_size", "num_hidden_layers", "intermediate_size"))
    biases = layers * (
        4 * hidden * config.flag("attention_bias", False) + (2 * ffn + hidden) * config.flag("mlp_bias", False)
    )
    norms = (2 * layers + 2) * hidden * (1 + config.flag("norm_bias", False))  # the first layer begins without one
    head = hidden * hidden + hidden * config.flag("classifier_bias", False)
    output_bias = config.count("vocab_size") * config.flag("decoder_bias", True)
    return decoder(
        config,
        kind="encoder",
        head_ratio=0.3,  # share of masked tokens (arXiv 2412.13663, section 2.2)
        context=min(config.count("max_position_embeddings"), MODERNBERT_CONTEXT),
        tied_embeddings=config.flag("tie_word_embeddings", True),
        sliding_window=max(1, config.count("local_attention") // 2),  # to each side
        global_attention_layers=_global_layers(config, layers),
        dropout=_drops(config, "attention_dropout", "embedding_dropout", "mlp_dropout"),
        other_params=norms + biases + head + output_bias,
        **heads_alone(config, hidden),
    )


def modernbert_decoder(config: ConfigJson) -> ModelShape:
    """ModernBERT as a decoder: the same layers, which see only what is before them."""
    return replace(modernbert(config), kind="decoder", head_ratio=1.0)


def _drops(config: ConfigJson, *keys: str) -> bool:
    """Whether any of these rates of dropout is above 0."""
    rates_given = [config.values.get(key) or 0.0 for key in keys]
    for key, value in zip(keys, rates_given, strict=True):
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1:
            raise config.fail(key, "a number from 0 to less than 1")
    return any(rates_given)


def t5(config: ConfigJson) -> ModelShape:
    """T5, T5 1.1 and mT5: relative positions in a small table of each stack."""
    return _t5(config, tables=2)


def umt5(config: ConfigJson) -> ModelShape:
    """UMT5: mT5 with a table of positions in every layer."""
    encoding = config.count("num_layers")
    return _t5(config, tables=encoding + (config.opt_count("num_decoder_layers") or encoding))


def _t5(config: ConfigJson, tables: int) -> ModelShape:
    hidden, encoding, heads = config.count("d_model"), config.count("num_layers"), config.count("num_heads")
    decoding = config.opt_count("num_decoder_layers") or encoding
    activation = config.text("feed_forward_proj") or "relu"
    norms = hidden * (2 * encoding + 3 * decoding + 2)
    buckets = config.opt_count("relative_attention_num_buckets") or 32
    return decoder(
        config,
        kind="encoder-decoder",
        layers=encoding + decoding,
        heads=heads,
        kv_heads=heads,
        head_dim=config.count("d_kv"),
        ffn_hidden=config.count("d_ff"),
        gated_mlp=activation.startswith("gated-"),
        context=config.opt_count("n_positions") or BERT_CONTEXT,
        tied_embeddings=config.flag("tie_word_embeddings", True),
        cross_attention_layers=decoding,
        other_params=norms + tables * buckets * heads,
    )
