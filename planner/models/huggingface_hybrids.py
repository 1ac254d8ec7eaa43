"""How families of hybrids, which combine attention and linear attention, write their shape into a `config.json`.

The defaults for missing keys are in `huggingface_families.DEFAULTS`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from planner.models.huggingface_decoder import decoder, heads_of
from planner.models.huggingface_json import ConfigJson
from planner.models.huggingface_mixtures import experts_of, first_dense, groups_of, latent_of, qwen_moe
from planner.models.linear_attention import LinearAttention
from planner.models.shape import ModelShape

ATTENTION, LINEAR, DENSE, EXPERTS = "full_attention", "linear_attention", "mlp", "moe"
CONVOLUTION = "conv"
BLOCK_TYPES = {
    CONVOLUTION: CONVOLUTION,
    ATTENTION: ATTENTION, "attention": ATTENTION, "*": ATTENTION, LINEAR: LINEAR, "mamba": LINEAR, "M": LINEAR,
    DENSE: DENSE, "-": DENSE, EXPERTS: EXPERTS, "E": EXPERTS,
}  # fmt: skip
"""Kind of a layer by every word used for it: in lists of layers, before and since transformers 5, and in patterns."""


def _kinds(config: ConfigJson, key: str, layers: tuple[str, ...], known: tuple[str, ...]) -> tuple[str, ...]:
    kinds = tuple(BLOCK_TYPES.get(layer, "") for layer in layers)
    if not set(kinds) <= set(known):
        names = ", ".join(sorted(name for name, kind in BLOCK_TYPES.items() if kind in known))
        raise config.fail(key, f"layers among {names}")
    return kinds


def _mamba_of(config: ConfigJson, layers: int, names: Mapping[str, str], **fields: Any) -> LinearAttention | None:
    """Mamba-2 layers, read from the keys in `names` that hold their sizes; None if the model has no such layers."""
    if not layers:
        return None
    heads, groups = config.count(names["heads"]), config.count(names["groups"])
    if heads % groups:
        raise config.fail(names["groups"], f"a divisor of {names['heads']} ({heads})")
    if config.values.get(names["head_dim"]) in (None, "auto"):
        stated = config.opt_count(names["inner"]) if "inner" in names else None
        inner = stated or (config.opt_count("mamba_expand") or 2) * config.count("hidden_size")
        if inner % heads:
            raise config.fail(names["heads"], f"a divisor of the {inner} values of a token")
        head_dim = inner // heads
    else:
        head_dim = config.count(names["head_dim"])
    return LinearAttention(
        layers=layers, key_heads=groups, key_dim=config.count(names["state"]), value_heads=heads, value_dim=head_dim,
        convolution=config.opt_count(names["convolution"]) or 4, **fields,
    )  # fmt: skip


_NEMOTRON = {
    "heads": "mamba_num_heads", "groups": "n_groups", "head_dim": "mamba_head_dim", "state": "ssm_state_size",
    "convolution": "conv_kernel",
}  # fmt: skip
_MAMBA = {
    "heads": "mamba_n_heads", "groups": "mamba_n_groups", "head_dim": "mamba_d_head", "state": "mamba_d_state",
    "convolution": "mamba_d_conv",
}  # fmt: skip
_FALCON = _MAMBA | {"inner": "mamba_d_ssm"}


def nemotron_h(config: ConfigJson) -> ModelShape:
    """Nemotron-H: attention, Mamba-2 and feed-forward are separate layers; two of them count as one layer here."""
    pattern = config.text("hybrid_override_pattern")
    key = "layers_block_type" if config.texts("layers_block_type") else "layer_types"
    listed = config.texts(key)
    if not listed and not pattern:
        raise config.fail("hybrid_override_pattern", "the layers, for example `M-M*`")
    kinds = _kinds(
        config, key if listed else "hybrid_override_pattern", listed or tuple(pattern or ""),
        (ATTENTION, LINEAR, DENSE, EXPERTS),
    )  # fmt: skip
    dense, moe = kinds.count(DENSE), kinds.count(EXPERTS)
    layers = -(-len(kinds) // 2)
    if moe + bool(dense) > layers:
        raise config.fail(key if listed else "hybrid_override_pattern", "experts in half of the layers at most")
    return decoder(
        config,
        layers=layers,
        gated_mlp=False,
        ffn_hidden=config.count("intermediate_size") if dense else 0,
        attention_layers=kinds.count(ATTENTION),
        linear=_mamba_of(config, kinds.count(LINEAR), _NEMOTRON),
        ffn_layers=dense + moe,
        dense_layers=dense if moe else 0,
        **(_nemotron_experts(config) if moe else {}),
    )


def _nemotron_experts(config: ConfigJson) -> dict[str, Any]:
    experts = experts_of(config, ("n_routed_experts", "num_local_experts"), "moe_intermediate_size")
    shared = config.count("moe_shared_expert_intermediate_size")  # total, regardless of `n_shared_experts`
    if shared % experts["expert_ffn"]:
        raise config.fail("moe_shared_expert_intermediate_size", "a multiple of moe_intermediate_size")
    return {
        "shared_experts": shared // experts["expert_ffn"],
        "expert_hidden": config.opt_count("moe_latent_size"),
        **experts,
        **groups_of(config, experts["experts"]),
    }


def _delta_of(config: ConfigJson) -> dict[str, Any]:
    """Fields of models with gated attention in every n-th layer and the gated delta rule in the others."""
    listed, layers = config.texts("layer_types"), config.count("num_hidden_layers")
    if listed and len(listed) != layers:
        raise config.fail("layer_types", f"one entry for each of {layers} layers")
    attention = layers // (config.opt_count("full_attention_interval") or 4)
    if listed:
        attention = _kinds(config, "layer_types", listed, (ATTENTION, LINEAR)).count(ATTENTION)
    if attention == layers:
        return {"gated_attention": True}
    key_heads, value_heads = config.count("linear_num_key_heads"), config.count("linear_num_value_heads")
    if value_heads % key_heads:
        raise config.fail("linear_num_key_heads", f"a divisor of linear_num_value_heads ({value_heads})")
    linear = LinearAttention(
        layers=layers - attention, key_heads=key_heads,
        key_dim=config.count("linear_key_head_dim"), value_heads=value_heads,
        value_dim=config.count("linear_value_head_dim"), head_inputs=2,
        convolution=config.opt_count("linear_conv_kernel_dim") or 4,
    )  # fmt: skip
    return {"attention_layers": attention, "gated_attention": True, "linear": linear}


def qwen_next_moe(config: ConfigJson) -> ModelShape:
    """Qwen3-Next and the mixture-of-experts models of Qwen3.5."""
    return qwen_moe(config, **_delta_of(config))


def qwen_next(config: ConfigJson) -> ModelShape:
    """The dense models of Qwen3.5."""
    return decoder(config, **_delta_of(config))


def falcon_h1(config: ConfigJson) -> ModelShape:
    """Falcon-H1: attention and Mamba-2 in parallel in every layer."""
    layers = config.count("num_hidden_layers")
    return decoder(config, linear=_mamba_of(config, layers, _FALCON, gated_norm=config.flag("mamba_rms_norm", False)))


def bamba(config: ConfigJson) -> ModelShape:
    """Bamba: attention in the layers that the file lists, Mamba-2 in the others."""
    layers = config.count("num_hidden_layers")
    attention = len({number for number in config.whole_numbers("attn_layer_indices") if 0 <= number < layers})
    return decoder(config, attention_layers=attention, linear=_mamba_of(config, layers - attention, _MAMBA))


def granite_hybrid(config: ConfigJson) -> ModelShape:
    """Granite hybrids: attention in some layers, Mamba-2 in the others, and a shared feed-forward block in each layer.

    The shared block is the only feed-forward block, or is added to routed experts.
    """
    listed, layers = config.texts("layer_types") or config.texts("layers_block_type"), config.count("num_hidden_layers")
    kinds = _kinds(config, "layer_types", listed, (ATTENTION, LINEAR))
    if kinds and len(kinds) != layers:
        raise config.fail("layer_types", f"one entry for each of {layers} layers")
    attention, shared = kinds.count(ATTENTION), config.count("shared_intermediate_size")
    mixers = {"attention_layers": attention, "linear": _mamba_of(config, layers - attention, _MAMBA)}
    if not config.opt_count("num_local_experts", low=0):
        return decoder(config, ffn_hidden=shared, **mixers)
    experts = experts_of(config, ("num_local_experts",), "intermediate_size")
    if shared % experts["expert_ffn"]:
        raise config.fail("shared_intermediate_size", "a multiple of intermediate_size")
    return decoder(config, ffn_hidden=0, shared_experts=shared // experts["expert_ffn"], **mixers, **experts)


def _attending(config: ConfigJson, other: str) -> int | None:
    """Number of layers in `layer_types` that have attention; None if the file does not list its layers."""
    listed, layers = config.texts("layer_types"), config.count("num_hidden_layers")
    if listed and len(listed) != layers:
        raise config.fail("layer_types", f"one entry for each of {layers} layers")
    return _kinds(config, "layer_types", listed, (ATTENTION, other)).count(ATTENTION) if listed else None


def _lfm2(config: ConfigJson, **fields: Any) -> ModelShape:
    """LFM2: attention in some layers, a gated short convolution in the others."""
    hidden, layers = config.count("hidden_size"), config.count("num_hidden_layers")
    attention = _attending(config, CONVOLUTION)
    if attention is None:
        numbers = {layer for layer in config.whole_numbers("full_attn_idxs") if 0 <= layer < layers}
        attention = layers if config.values.get("full_attn_idxs") is None else len(numbers)
    taps, heads = config.opt_count("conv_L_cache") or 3, heads_of(config, hidden)
    convolution = LinearAttention(
        layers=layers - attention, key_heads=1, key_dim=0, value_heads=hidden, value_dim=1, head_inputs=0,
        convolution=taps, gated_norm=False, gates=2,
    )  # fmt: skip
    biases = 5 * hidden * config.flag("conv_bias", False)
    tied = config.values.get("tie_embedding")
    return decoder(
        config,
        attention_layers=attention,
        linear=convolution if attention < layers else None,
        tied_embeddings=config.flag("tie_word_embeddings" if tied is None else "tie_embedding", True),
        other_params=(2 * layers + 1) * hidden
        + attention * 2 * heads["head_dim"]
        + (layers - attention) * (taps * hidden + biases),
        **heads,
        **fields,
    )


MOST_TIMES = 100
"""Largest plausible factor of a feed-forward size."""


def lfm2(config: ConfigJson) -> ModelShape:
    """The dense models of LFM2, whose file gives the feed-forward size before it is reduced and rounded up."""
    ffn = config.count("block_ff_dim", "intermediate_size")
    if config.flag("block_auto_adjust_ff_dim", True):
        multiple, factor = config.opt_count("block_multiple_of") or 256, config.values.get("block_ffn_dim_multiplier")
        factor = 1.0 if factor is None else factor
        if isinstance(factor, bool) or not isinstance(factor, int | float) or not 0 < factor <= MOST_TIMES:
            raise config.fail("block_ffn_dim_multiplier", f"a number above 0 and at most {MOST_TIMES}")
        ffn = -(-int(factor * int(2 * ffn / 3)) // multiple) * multiple
    return _lfm2(config, ffn_hidden=ffn)


def lfm2_moe(config: ConfigJson) -> ModelShape:
    """The mixtures of experts of LFM2, after leading dense layers."""
    experts = experts_of(config, ("num_experts", "num_local_experts"), "moe_intermediate_size")
    dense = config.opt_count("num_dense_layers", low=0)
    dense = min(2 if dense is None else dense, config.count("num_hidden_layers"))
    return _lfm2(config, dense_layers=dense, **experts)


def _every(config: ConfigJson, kind: str, period: int, offset: int) -> tuple[int, int]:
    """Period and offset of a kind of layer in Jamba, which has it from the layer numbered `offset` on."""
    period = config.opt_count(f"{kind}_layer_period") or period
    given = config.opt_count(f"{kind}_layer_offset", low=0)
    offset = offset if given is None else given
    if offset >= period:
        raise config.fail(f"{kind}_layer_offset", f"less than {kind}_layer_period ({period})")
    return period, offset


def jamba(config: ConfigJson) -> ModelShape:
    """Jamba: attention in every n-th layer, Mamba-1 in the others; experts in every n-th layer, if there are any."""
    hidden, layers = config.count("hidden_size"), config.count("num_hidden_layers")
    period, offset = _every(config, "attn", 8, 4)
    attention = len(range(offset, layers, period))
    inner = (config.opt_count("mamba_expand") or 2) * hidden
    state, taps = config.opt_count("mamba_d_state") or 16, config.opt_count("mamba_d_conv") or 4
    by_itself = config.values.get("mamba_dt_rank") in (None, "auto")
    rank = -(-hidden // 16) if by_itself else config.count("mamba_dt_rank")
    mamba = LinearAttention(
        layers=layers - attention, key_heads=1, key_dim=state, value_heads=inner, value_dim=1, head_inputs=0,
        convolution=taps, gated_norm=False, step_rank=rank,
    )  # fmt: skip
    # convolution, decays, the direct path and the bias of the time steps, of each channel; three norms
    vectors = inner * (taps + config.flag("mamba_conv_bias", True) + state + 2) + rank + 2 * state
    vectors += (2 * inner + hidden) * config.flag("mamba_proj_bias", False)
    fields: dict[str, Any] = {}
    if (config.opt_count("num_experts", "num_local_experts") or 16) > 1:
        moe_every, first = _every(config, "expert", 2, 1)
        fields = experts_of(config, ("num_experts", "num_local_experts"), "intermediate_size")
        fields |= {"dense_layers": min(first, layers), "moe_every": moe_every}
    return decoder(
        config,
        attention_layers=attention,
        linear=mamba if attention < layers else None,
        other_params=(2 * layers + 1) * hidden + (layers - attention) * vectors,
        **fields,
    )


KIMI_KEYS = {
    "num_expert_group": "n_group", "num_experts_per_token": "num_experts_per_tok",
    "num_shared_experts": "n_shared_experts", "num_experts": "num_local_experts",
}  # fmt: skip
"""Keys of the published file, with the names under which transformers writes them."""


def _kimi_attention(config: ConfigJson, lists: ConfigJson) -> int:
    """Number of layers with attention, by `layer_types`, by the published lists (from 1), or every fourth layer."""
    layers, listed = config.count("num_hidden_layers"), _attending(config, LINEAR)
    if listed is not None:
        return listed
    attention, delta = set(lists.whole_numbers("full_attn_layers")), set(lists.whole_numbers("kda_layers"))
    if not attention and not delta:
        return (layers - 1) // 4
    both = {layer for layer in attention | delta if 1 <= layer <= layers}
    if attention & delta or len(both) != layers:
        raise config.fail("linear_attn_config", f"each of {layers} layers in `full_attn_layers` or `kda_layers`")
    return len(attention & both)


def kimi_linear(config: ConfigJson) -> ModelShape:
    """Kimi Linear: latent attention in every fourth layer, Kimi Delta Attention in the others; experts."""
    named = {name: config.values[key] for key, name in KIMI_KEYS.items() if config.values.get(key) is not None}
    config = ConfigJson(config.file, {**config.values, **named})
    hidden, layers, lists = (
        config.count("hidden_size"),
        config.count("num_hidden_layers"),
        config.inner("linear_attn_config"),
    )
    latent, experts = latent_of(config), experts_of(config, ("num_local_experts",), "moe_intermediate_size")
    attention = _kimi_attention(config, lists)
    heads = lists.opt_count("num_heads") or config.opt_count("linear_num_heads") or 32
    size = lists.opt_count("head_dim") or config.opt_count("linear_head_dim") or 128
    taps = lists.opt_count("short_conv_kernel_size") or config.opt_count("linear_conv_kernel_dim") or 4
    delta = LinearAttention(
        layers=layers - attention, key_heads=heads, key_dim=size, value_heads=heads, value_dim=size, convolution=taps,
        gates=0, gate_rank=size,
    )  # fmt: skip
    # convolutions and a bias of the decays of each channel; a decay of each head; a norm
    vectors = heads * size * (3 * taps + 1) + heads + size
    ranks = latent["kv_lora_rank"] + (latent["q_lora_rank"] or 0)
    biases = ranks + latent["rope_head_dim"] + hidden if config.flag("attention_bias", False) else 0
    return decoder(
        config,
        attention_layers=attention,
        linear=delta if attention < layers else None,
        shared_experts=config.opt_count("n_shared_experts", low=0) or 0,
        dense_layers=first_dense(config, default=1),
        other_params=(2 * layers + 1) * hidden + attention * (ranks + biases) + (layers - attention) * vectors,
        **latent,
        **experts,
        **groups_of(config, experts["experts"]),
    )
