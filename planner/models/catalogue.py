"""The catalogue of published models: rows of `catalog/models.csv`, found by name."""

from __future__ import annotations

import re

from planner.evidence import Evidence, EvidenceKind
from planner.models.linear_attention import LinearAttention
from planner.models.shape import ModelShape
from planner.rows import CATALOG, Catalogue, Row

KINDS = ("decoder", "encoder", "encoder-decoder")
_VERSION = r"(?i)(?<=[a-z0-9])[-_ ](base|pt|hf|instruct|it|chat|thinking|think)$"
"""What owners add to a model's name for its version before, or after, further training, or for its format."""


def _shape(row: Row) -> ModelShape:
    def count(key: str, default: int = 0) -> int:
        value = row.opt_integer(key, high=10**7)
        return default if value is None else value

    return ModelShape(
        name=row.text("id"),
        kind=row.choice("kind", KINDS),
        layers=row.integer("layers", low=1, high=1000),
        hidden=row.integer("hidden", low=64, high=10**6),
        heads=row.integer("heads", low=1, high=10_000),
        kv_heads=row.integer("kv_heads", low=1, high=10_000),
        head_dim=row.integer("head_dim", low=8, high=4096),
        ffn_hidden=row.integer("ffn_hidden", high=10**7),
        gated_mlp=row.flag("gated_mlp"),
        vocab=row.integer("vocab", low=2, high=10**7),
        context=row.integer("context", low=16, high=10**8),
        tied_embeddings=row.flag("tied_embeddings"),
        learned_positions=count("learned_positions"),
        biases=row.flag("biases"),
        sliding_window=row.opt_integer("sliding_window", low=1),
        global_attention_every=count("global_attention_every", 1),
        global_attention_layers=row.opt_integer("global_attention_layers", low=1),
        q_lora_rank=row.opt_integer("q_lora_rank", low=1),
        kv_lora_rank=row.opt_integer("kv_lora_rank", low=1),
        rope_head_dim=count("rope_head_dim"),
        v_head_dim=row.opt_integer("v_head_dim", low=1),
        attention_layers=row.opt_integer("attention_layers"),
        gated_attention=row.opt_text("gated_attention") == "yes",
        linear=_linear(row),
        ffn_layers=row.opt_integer("ffn_layers"),
        experts=count("experts"),
        top_k=count("top_k"),
        expert_groups=count("expert_groups"),
        token_groups=count("token_groups"),
        shared_experts=count("shared_experts"),
        expert_ffn=count("expert_ffn"),
        expert_hidden=row.opt_integer("expert_hidden", low=1),
        dense_layers=count("dense_layers"),
        moe_every=count("moe_every", 1),
        cross_attention_layers=count("cross_attention_layers"),
        cached_segments=count("cached_segments"),
        relative_positions=row.opt_text("relative_positions") == "yes",
        head_ratio=row.opt_number("head_ratio", high=1.0) or 1.0,
        dropout=None if row.opt_text("dropout") is None else row.flag("dropout"),
        other_params=row.opt_integer("other_params"),
        mtp_layers=count("mtp_layers"),
        mtp_shares_weights=row.opt_text("mtp_shares_weights") == "yes",
        params_published=row.opt_number("params_published", low=1e6, high=1e14),
        global_batch_tokens=row.opt_number("global_batch_tokens", low=1e4, high=1e9),
        evidence=Evidence(
            id=f"model:{row.text('id')}",
            kind=EvidenceKind.PUBLISHED,
            what=f"shape of {row.text('id')}",
            source=row.text("source"),
            date=row.text("date"),
        ),
    )


def _linear(row: Row) -> LinearAttention | None:
    layers = row.opt_integer("linear_layers", low=1)
    if layers is None:
        return None
    convolution, gates = row.opt_integer("linear_convolution", low=1), row.opt_integer("linear_gates")
    return LinearAttention(
        layers=layers,
        key_heads=row.integer("linear_key_heads", low=1),
        key_dim=row.integer("linear_key_dim"),
        value_heads=row.integer("linear_value_heads", low=1),
        value_dim=row.integer("linear_value_dim", low=1),
        head_inputs=row.integer("linear_head_inputs"),
        convolution=4 if convolution is None else convolution,
        gates=1 if gates is None else gates,
        gate_rank=row.opt_integer("linear_gate_rank") or 0,
        gated_norm=row.opt_text("linear_gated_norm") != "no",
    )


MODELS = Catalogue(CATALOG / "models.csv", _shape, what="model", listing="mpplan models")


def load_models() -> dict[str, ModelShape]:
    """All models of the catalogue by id, family by family.

    Raises:
        InputFileError: a row of the catalogue is wrong.
    """
    return MODELS.by_id


def model_named(name: str) -> ModelShape | None:
    """The model with a name or alias, or None.

    A leading owner (`Qwen/Qwen3-8B`) is allowed, and so are words at the end that say how a model was trained further
    or saved (`Qwen2.5-7B-Instruct`), unless a row has the whole name: they change the weights, not the shape.
    """
    name = name if MODELS.get(name) is not None else name.rsplit("/", 1)[-1]
    while (model := MODELS.get(name)) is None and re.search(_VERSION, name):
        name = re.sub(_VERSION, "", name)
    return model


def find_model(name: str) -> ModelShape:
    """Find a model by name or alias, ignoring case and punctuation; a leading owner (`Qwen/Qwen3-8B`) is allowed.

    Raises:
        UsageError: no such model; similar names are offered.
    """
    return model_named(name) or MODELS.find(name)
