"""How families of hybrids, which combine attention and linear attention, write their shape into a `config.json`.

The defaults for missing keys are in `huggingface_families.DEFAULTS`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from planner.models.huggingface_decoder import decoder
from planner.models.huggingface_json import ConfigJson
from planner.models.huggingface_mixtures import experts_of, groups_of, qwen_moe
from planner.models.linear_attention import LinearAttention
from planner.models.shape import ModelShape

ATTENTION, LINEAR, DENSE, EXPERTS = "full_attention", "linear_attention", "mlp", "moe"
BLOCK_TYPES = {
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
    kinds = _kinds(config, "layer_types", listed, (ATTENTION, LINEAR)) or (LINEAR,) * layers
    if len(kinds) != layers:
        raise config.fail("layer_types", f"one entry for each of {layers} layers")
    attention, shared = kinds.count(ATTENTION), config.count("shared_intermediate_size")
    mixers = {"attention_layers": attention, "linear": _mamba_of(config, layers - attention, _MAMBA)}
    if not config.opt_count("num_local_experts", low=0):
        return decoder(config, ffn_hidden=shared, **mixers)
    experts = experts_of(config, ("num_local_experts",), "intermediate_size")
    if shared % experts["expert_ffn"]:
        raise config.fail("shared_intermediate_size", "a multiple of intermediate_size")
    return decoder(config, ffn_hidden=0, shared_experts=shared // experts["expert_ffn"], **mixers, **experts)
