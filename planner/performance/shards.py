"""Parameters that one GPU holds, by pipeline end and kind: the basis for memory, optimizer and gradient sizes."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from planner.lazy import dataclass
from planner.models.shape import ModelShape
from planner.parallelism.layout import Layouts
from planner.performance.operations import expert_tp
from planner.rates.terms import Value
from planner.training.recipe import Recipe

Array = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Shards:
    """Parameters on one GPU before ZeRO, and sizes of the groups over which ZeRO shards them, `[layout]` each."""

    layers_most: Array
    """Layers of the fullest pipeline stage."""
    layers_last: Array
    """Layers of the last stage (it holds the output layer)."""
    dense_per_layer: Array
    """Parameters of one layer outside the routed experts on a tensor parallel rank, averaged over layers."""
    expert_per_layer: Array | float
    """Parameters of the routed experts of one layer on this GPU, averaged over layers; the number 0 for a model without
    such experts, for which nothing is then computed."""
    first_extra: Array
    """Embedding parameters (and, without a pipeline, those of the output layer) on the first stage."""
    last_extra: Array
    """Output layer parameters on the last stage; with the embedding if there is no pipeline or multi-token
    prediction."""
    dense_ranks: Array
    """Ranks over which the states of the dense parameters are sharded: `dp * cp`, or one of its groups."""
    expert_ranks: Array
    """Ranks that hold the same experts, over which their states are sharded."""
    dense_share: float
    """Trained parameters over all dense parameters; with LoRA, the dense adapters' parameters over them."""
    expert_share: float
    """Trained parameters over all parameters of routed experts; with LoRA, their adapters' parameters over them."""

    def dense(self, last: bool) -> Array:
        """Dense parameters of the first or the last stage."""
        layers, extra = (self.layers_last, self.last_extra) if last else (self.layers_most, self.first_extra)
        return layers * self.dense_per_layer + extra

    def expert(self, last: bool) -> Array | float:
        """Expert parameters of the first or the last stage; 0 for a model without routed experts."""
        if isinstance(self.expert_per_layer, float):
            return 0.0
        return (self.layers_last if last else self.layers_most) * self.expert_per_layer

    def per_rank(self, dense: Value, expert: Value, sharded: npt.NDArray[np.bool_]) -> Value:
        """Amounts for dense parameters and for routed experts, each divided over its ranks where these are sharded."""
        amount: Value = dense / np.where(sharded, self.dense_ranks, 1.0)
        if isinstance(self.expert_per_layer, float):
            return amount
        return amount + expert / np.where(sharded, self.expert_ranks, 1.0)

    def trained(self, last: bool) -> Array:
        """Trained parameters of the first or the last stage."""
        dense = self.dense(last) * self.dense_share
        return dense if isinstance(self.expert_per_layer, float) else dense + self.expert(last) * self.expert_share


def stage_layers(layers: int, at: Layouts, head_layers: float | None = None) -> tuple[Array, Array]:
    """Layers of the fullest and of the last stage, `[layout]`; earlier stages take the remainder.

    If chunks are even only when embedding and output layer count as layers, the first and the last stage hold one layer
    less than the stages between them. A pipeline of two stages has no stages between.

    Args:
        layers: layers of the model.
        at: the layouts.
        head_layers: the output layer's cost in layers, where stages are cut by cost: each takes layers until their sum
            exceeds its share (huggingface/nanotron, `models/base.py`, `build_model`). None to cut by number of layers.
    """
    most = np.ceil(layers / (at.pp * at.vp)) * at.vp
    most = np.minimum(most, np.ceil(layers / at.pp) + (at.vp > 1) * (at.pp > 2) * at.vp)
    last = np.maximum(np.floor(layers / at.pp), 0)
    if head_layers is not None:
        share = (layers + head_layers) / at.pp
        before_last = np.minimum(np.floor((at.pp - 1) * share) + 1.0, layers)
        most = np.where(at.vp == 1, np.minimum(np.floor(share) + 1.0, layers), most)
        last = np.where(at.vp == 1, layers - before_last, last)
    single_stage = at.pp == 1
    most, last = np.where(single_stage, layers, most), np.where(single_stage, layers, last)
    return most.astype(np.float64), last.astype(np.float64)


def filled_layers(layers: int, at: Layouts, least_last: int) -> tuple[Array, Array]:
    """Layers of the fullest and of the last stage, `[layout]`, where the last chunk takes the remaining layers.

    Modules of multi-token prediction are at the end of the model, each with an output layer. Teams that train them give
    the last chunk fewer layers (NVIDIA-NeMo/Megatron-Bridge, `recipes/deepseek/h100/deepseek_v3.py`,
    `_get_deepseek_v3_pipeline_layout`). Launch files for Megatron-LM have the same chunks.

    Args:
        layers: layers of the model, including these modules.
        at: the layouts.
        least_last: minimum number of layers in the last chunk: these modules.
    """
    chunks = at.pp * at.vp
    last_chunk = np.maximum(layers - np.ceil(layers / chunks) * (chunks - 1), min(least_last, layers))
    each, longer = np.divmod(layers - last_chunk, np.maximum(chunks - 1, 1))  # the first `longer` have one layer more
    most = each * at.vp + np.minimum(np.ceil(longer / at.pp), at.vp)
    last = each * (at.vp - 1) + np.minimum(longer // at.pp, at.vp - 1) + last_chunk
    single_stage = at.pp == 1
    return np.where(single_stage, layers, np.maximum(most, last)), np.where(single_stage, layers, last)


def _stages(recipe: Recipe, at: Layouts) -> tuple[Array, Array]:
    model = recipe.model
    if model.mtp_unrolled:
        return filled_layers(model.layers, at, model.mtp_unrolled)
    return stage_layers(model.layers, at, _head_layers(model) if recipe.balances_stages else None)


def shard_params(recipe: Recipe, at: Layouts) -> Shards:
    """Count the parameters per GPU, `[layout]`; embedding and output layer are split over `tp` like the layers."""
    model = recipe.model
    tp = at.tp.astype(np.float64)
    etp = expert_tp(recipe, at)
    most, last = _stages(recipe, at)
    moe = model.moe_layers
    held_layer_share = model.held_share / max(model.layers, 1)
    dense_moe = model.layer_params_moe - model.routed_params if moe else 0.0
    matrices = held_layer_share * (moe * dense_moe + (model.layers - moe) * model.layer_params_dense)
    routed = held_layer_share * moe * model.routed_params / (at.ep * etp) if moe else 0.0
    embedding, head = model.embedding_params / tp, model.head_params / tp
    both_ends = embedding + (0.0 if model.tied_embeddings else head)
    last_end = head + (embedding if model.mtp_unrolled else 0.0)  # MTP modules embed further tokens
    single_stage = at.pp == 1
    dense_share, expert_share = _trained_shares(recipe)
    return Shards(
        layers_most=most,
        layers_last=last,
        dense_per_layer=matrices / tp
        + model.held_share * copied_per_layer(model, at.tp)
        + held_layer_share * model.vector_params,
        expert_per_layer=routed,
        first_extra=np.where(single_stage, both_ends, embedding),
        last_extra=np.where(single_stage, both_ends, last_end),
        dense_ranks=at.dp * at.cp / at.replicas,
        expert_ranks=np.maximum(1.0, at.tp * at.cp * at.dp / (at.ep * etp * at.replicas)),
        dense_share=dense_share,
        expert_share=expert_share,
    )


def copied_per_layer(model: ModelShape, tp: npt.NDArray[np.int64]) -> Array:
    """Matrix parameters per layer that a tensor parallel rank holds beyond its `1 / tp`, averaged over layers,
    `[layout]`.

    Every rank holds all of the projections down to latent states and gates, which all heads share, of the projections
    around routed experts, and of the router. With more ranks than key and value heads, several ranks hold the same
    heads (`parallel_mode="duplicated"` in Megatron-Core's `multi_latent_attention.py` and `moe_layer.py`; `NoParallel`
    in torchtitan's `deepseek_v3/infra/parallelize.py`).
    """
    hidden, attended = model.hidden, model.attention_share
    whole = hidden * model.moe_share * (model.experts + 2.0 * (model.expert_hidden or 0))
    shared: Value = 0.0
    if model.kv_lora_rank is not None:
        whole += attended * hidden * ((model.q_lora_rank or 0) + model.kv_lora_rank + model.rope_head_dim)
    else:
        kv = attended * hidden * model.kv_heads * (model.head_dim + model.value_dim) * (1.0 + model.cross_share)
        shared = kv * (1.0 / np.minimum(tp, model.kv_heads) - 1.0 / tp)
    if model.linear is not None:
        keys = model.linear_share * hidden * float(model.linear.keys_of_input)
        shared = shared + keys * (1.0 / np.minimum(tp, model.linear.key_heads) - 1.0 / tp)
        between = (m.inputs * m.outputs for m in model.linear.inner_matrices(hidden) if m.split == "none")
        whole += model.linear_share * sum(between)
    return np.asarray(shared + whole * (1.0 - 1.0 / tp))


def _head_layers(model: ModelShape) -> float:
    """Cost of the output layer, in units of one layer's cost."""
    head = model.head_params * model.head_ratio
    return model.layers * head / max(model.matrix_params_active - head, 1.0)


def trained_share(recipe: Recipe) -> float:
    """Trained over all parameters: 1 for full training, adapters over all with LoRA, or the share of trained layers."""
    model = recipe.model
    if recipe.trains_all:
        return 1.0
    if recipe.how.adapts:
        return recipe.adapter_params_per_layer * model.layers / model.params_total
    ends = model.embedding_params + (0.0 if model.tied_embeddings else model.head_params)
    return recipe.weight_gradient_share * (1.0 - ends / model.params_total)


def _trained_shares(recipe: Recipe) -> tuple[float, float]:
    """Trained over all parameters, for dense parameters and for routed experts; adapters count with their weights."""
    if not recipe.how.adapts:
        share = trained_share(recipe)
        return share, share
    model, beside_routed = recipe.model, recipe.adapter_params_of(routed=True)
    routed = model.held_share * model.moe_layers * model.routed_params
    dense_adapters = (recipe.adapter_params_per_layer - beside_routed) * model.layers
    return dense_adapters / (model.params_total - routed), beside_routed * model.layers / routed if routed else 0.0


LOW_BIT_BYTES = {True: 0.516, False: 0.5625}
"""Bytes of a 4-bit weight with its scale: 4.127 bits if the FP32 scales of blocks of 64 are quantised as well, 4.5 if
not (QLoRA, arXiv 2305.14314, section 3: double quantisation)."""


def frozen_weight_bytes(recipe: Recipe) -> float | None:
    """Bytes per frozen weight of a linear layer; None where the weights are trained.

    They take 4 bits with QLoRA, otherwise the compute type. Transformer Engine keeps frozen weights only in FP8, in
    both layouts (documentation: `fp8_model_init`); torchao keeps the 16-bit weight and casts it when it is used.
    """
    if recipe.how.low_bits:
        return LOW_BIT_BYTES[recipe.double_quant]
    if not recipe.how.adapts:
        return None
    policy = recipe.policy
    return policy.low_weight_copy_bytes if recipe.fused and policy.narrow else policy.activation_bytes


def gathered_bytes(recipe: Recipe, at: Layouts) -> Value:
    """Bytes per gathered parameter of a layer, `[layout]` or one for all; 4-bit weights are gathered in packed form."""
    return LOW_BIT_BYTES[recipe.double_quant] if recipe.how.low_bits else gathered_bytes_of_ends(recipe, at)


def gathered_bytes_of_ends(recipe: Recipe, at: Layouts) -> Value:
    """Bytes per gathered parameter of embedding and output layer; frozen ones are in the compute type, not in FP32."""
    policy = recipe.policy
    if recipe.how.adapts:
        return min(policy.gather_bytes, policy.activation_bytes)
    return _under_zero_3(recipe, policy.gather_bytes, at)


def reduced_bytes(recipe: Recipe, at: Layouts) -> Value:
    """Bytes per reduced gradient, `[layout]` or one for all."""
    return _under_zero_3(recipe, recipe.policy.reduce_bytes, at)


def _under_zero_3(recipe: Recipe, each_bytes: float, at: Layouts) -> Value:
    """Bytes per element sent, given that ZeRO 3 sends in the compute type what autocast otherwise sends in FP32.

    FSDP casts its shards before it gathers them (huggingface/accelerate, `utils/dataclasses.py`: parameters and
    gradients in BF16 with `mixed_precision: bf16`), and so does DeepSpeed's stage 3 with `bf16.enabled`.
    """
    if not recipe.policy.autocast:
        return each_bytes
    return np.where(at.zero == 3, min(each_bytes, recipe.policy.activation_bytes), each_bytes)
