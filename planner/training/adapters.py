"""The weights of a layer that have adapters: their sizes, their number, and how many of them a token passes through."""

from __future__ import annotations

from dataclasses import replace

from planner.lazy import dataclass
from planner.models.shape import ModelShape

ALL_LINEAR = "all-linear"
LORA_TARGETS = (ALL_LINEAR, "attention", "mlp", "qv")
"""Weights that get adapters: every linear layer except the output layer (QLoRA's choice under PEFT's name), attention,
the feed-forward block, or only queries and values (the LoRA paper's choice, section 7.1)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Adapted:
    """One kind of weight with an adapter; counts are per layer, averaged over all layers (the mean layer)."""

    inputs: int
    outputs: int
    copies: float = 1.0
    """Number of such weights in the mean layer; each routed expert has one."""
    met: float = 1.0
    """Number of these weights that a token passes through."""
    routed: bool = False
    """Whether it belongs to routed experts, which are distributed over expert parallel ranks."""
    gives_hidden: bool = False
    """Whether it is the last weight of its block, whose inputs are split over tensor parallel ranks, so that its
    outputs are split like norms and residuals."""


def adapted_weights(model: ModelShape, targets: str, *, fused: bool) -> tuple[Adapted, ...]:
    """Every weight of the mean layer with an adapter.

    Args:
        model: the model.
        targets: one of `LORA_TARGETS`.
        fused: whether queries, keys and values are one weight with one adapter, and gate and up another, as in
            Megatron-Core.
    """
    beside_attention, beside_mlp = _attention(model, fused=fused), _mlp(model, fused=fused)
    if targets == "qv":
        q, kv = model.query_outputs, model.kv_heads * model.value_dim
        weights = (Adapted(inputs=model.hidden, outputs=q), Adapted(inputs=model.hidden, outputs=kv))
        return _as_often(weights, model.attention_share)
    beside_attention = _as_often(beside_attention, model.attention_share)
    all_linear = (*beside_attention, *_linear_attention(model), *beside_mlp)
    return {ALL_LINEAR: all_linear, "attention": beside_attention, "mlp": beside_mlp}[targets]


def _as_often(weights: tuple[Adapted, ...], share: float) -> tuple[Adapted, ...]:
    """Weights of the mean layer if only a share of the layers has them, once each."""
    return weights if share == 1.0 else tuple(replace(weight, copies=share, met=share) for weight in weights)


def _linear_attention(model: ModelShape) -> tuple[Adapted, ...]:
    """Weights of linear attention."""
    linear = model.linear
    if linear is None:
        return ()
    weights = [Adapted(inputs=model.hidden, outputs=outputs) for outputs in linear.input_products]
    weights += [Adapted(inputs=matrix.inputs, outputs=matrix.outputs) for matrix in linear.inner_matrices(model.hidden)]
    weights.append(Adapted(inputs=linear.inner, outputs=model.hidden, gives_hidden=True))
    return _as_often(tuple(weights), model.linear_share)


def _attention(model: ModelShape, *, fused: bool) -> tuple[Adapted, ...]:
    """Weights of queries, keys, values and output, or the chain of projections of latent attention."""
    h, q = model.hidden, model.query_outputs
    out = Adapted(inputs=model.heads * model.value_dim, outputs=h, gives_hidden=True)
    if model.kv_lora_rank is not None:
        nope = model.head_dim - model.rope_head_dim
        up = Adapted(inputs=model.kv_lora_rank, outputs=model.heads * (nope + model.value_dim))
        chain = (Adapted(inputs=h, outputs=model.kv_lora_rank + model.rope_head_dim), up, out)
        if model.q_lora_rank is None:
            return (Adapted(inputs=h, outputs=q), *chain)
        queries = Adapted(inputs=h, outputs=model.q_lora_rank), Adapted(inputs=model.q_lora_rank, outputs=q)
        return (*queries, *chain)
    k, v = model.kv_heads * model.head_dim, model.kv_heads * model.value_dim
    if fused:
        return (Adapted(inputs=h, outputs=q + k + v), out)
    return (*(Adapted(inputs=h, outputs=size) for size in (q, k, v)), out)


def _mlp(model: ModelShape, *, fused: bool) -> tuple[Adapted, ...]:
    """Up, gate and down weights of dense layers, routed experts and shared experts, per mean layer."""
    moe = model.moe_share
    dense = (1.0 - moe) * model.dense_ffn_share
    kinds = (
        (model.hidden, model.ffn_hidden, dense, dense, False),
        (model.expert_width, model.expert_ffn, moe * model.experts, moe * model.top_k, True),
        (model.hidden, model.expert_ffn, moe * model.shared_experts, moe * model.shared_experts, False),
    )
    ups = model.mlp_matrices - 1
    weights: list[Adapted] = []
    for outer, inner, copies, met, routed in kinds:
        if inner and copies:
            outputs = [ups * inner] if fused else [inner] * ups
            up = Adapted(inputs=outer, outputs=outputs[0], copies=copies, met=met, routed=routed)
            weights += [*[up] * len(outputs), replace(up, inputs=inner, outputs=outer, gives_hidden=True)]
    latent = model.expert_hidden
    if moe and latent is not None:
        sizes = ((model.hidden, latent), (latent, model.hidden))
        weights += [Adapted(inputs=before, outputs=after, copies=moe, met=moe) for before, after in sizes]
    return tuple(weights)
