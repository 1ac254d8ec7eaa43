"""Time of the work of one layer and of the output layer: matrix products, attention, memory-bound operations.

Layouts with the same split of a layer take the same time for it, so all values here are by split, `[split]`, or with
draws `[split, draw]` (`[draw]` for one layout).
"""

from __future__ import annotations

from dataclasses import fields

import numpy as np

from planner.kernels.surface import Surface, attention_s, large_flop_per_s
from planner.lazy import dataclass
from planner.parallelism.layout import Layouts
from planner.performance.operations import MatMul, Splits, Work, expert_tp
from planner.performance.products import cast_s, head_shares, product_times
from planner.rates.terms import Rates, Value
from planner.training.recipe import Recipe

FORWARD_SHARE = 0.4
"""Share of the forward pass in memory-bound traffic (2 of 5 passes that read and write norms and activations)."""

END_LAUNCHES = 60.0
"""Kernels of embedding, output layer and loss that the host launches per micro-batch; assumed."""
END_GAPS = 20.0
"""Kernels of embedding, output layer and loss whose start and drain the GPU waits for; assumed.

`launch_s` and `kernel_s` were fitted with `END_LAUNCHES` and `END_GAPS` at these values. Changing either one requires a
new fit.
"""

FLASH_BACKWARD = 2.5
"""Backward over forward FLOP of fused attention, which recomputes the scores (convention of FlashAttention's
benchmark)."""

MERGE_BYTES = 10.0
"""Bytes of traffic per element when the 16-bit result of a further chunk is added to a running FP32 result: the former
is read, the latter read and written (pytorch/pytorch, `torch/distributed/tensor/experimental/_attention.py`,
`_SDPAMerger`)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AttentionTime:
    """Seconds of the attention core of one layer with attention, for one micro-batch."""

    forward: Value
    total: Value
    """Forward and backward."""
    scores: Value = 0.0
    """Memory traffic of the score matrices (naive attention only), forward and backward."""

    def of_mean_layer(self, share: float) -> AttentionTime:
        """The mean over all layers of a model in which only a `share` of the layers has attention."""
        return AttentionTime(forward=share * self.forward, total=share * self.total, scores=share * self.scores)


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerTime:
    """Seconds of one layer (the mean of dense and MoE layers) for one micro-batch."""

    matmul: Value
    matmul_forward: Value
    attention: Value
    attention_forward: Value
    memory: Value
    memory_forward: Value
    scores_forward: Value
    """The part of `memory_forward` spent in passes over the score matrix (naive attention only)."""

    def by_layout(self, splits: Splits) -> LayerTime:
        """Expand the times from splits to layouts, `[layout]`, or with draws."""
        return LayerTime(**{f.name: splits.spread(getattr(self, f.name)) for f in fields(self)})

    @property
    def total(self) -> Value:
        """Forward and backward."""
        return self.matmul + self.attention + self.memory

    @property
    def forward(self) -> Value:
        """Forward only."""
        return self.matmul_forward + self.attention_forward + self.memory_forward


@dataclass(frozen=True, slots=True, kw_only=True)
class HeadTime:
    """Seconds of embedding, output layer and loss for one micro-batch."""

    matmul: Value
    memory: Value

    def by_layout(self, splits: Splits) -> HeadTime:
        """Expand the times from splits to layouts, `[layout]`, or with draws."""
        return HeadTime(matmul=splits.spread(self.matmul), memory=splits.spread(self.memory))

    @property
    def total(self) -> Value:
        """Forward and backward."""
        return self.matmul + self.memory


def attention_time(recipe: Recipe, work: Work, rates: Rates) -> AttentionTime:
    """Time of the attention core: the scores and their product with the values."""
    if recipe.attention == "naive":
        return _naive_attention(recipe, work, rates)
    surface = rates.surface("attention_flop_per_s")
    forward: Value
    backward: Value = FLASH_BACKWARD
    if surface is None:
        forward = work.attention_flop / rates.attention_flop_per_s
    else:
        forward = _measured_attention(recipe, work, surface, rates)
        backward = backward / rates.attention_backward_ratio
    merge_forward, merge_backward = _merges(work, rates)
    total = forward * (1.0 + backward) + merge_forward + merge_backward
    return AttentionTime(forward=forward + merge_forward, total=total)


def _naive_attention(recipe: Recipe, work: Work, rates: Rates) -> AttentionTime:
    # Batched products with the head size as inner or outer dimension are bound by reading or writing the score matrix.
    bytes_each = recipe.policy.activation_bytes
    operands = 2.0 * work.attention_scores * bytes_each / rates.operand_bytes_per_s
    rate = rates.other_flop_per_s * (1.0 if recipe.heads_aligned else rates.misaligned_ratio)
    forward = work.attention_flop / rate + operands + 2 * rates.kernel_s
    softmax_bytes = work.attention_scores * bytes_each * (rates.autocast_ratio if recipe.autocasts else 1.0)
    traffic = softmax_bytes * rates.score_passes * rates.fusion_ratio / rates.memory_bytes_per_s
    return AttentionTime(forward=forward, total=3.0 * forward, scores=traffic if recipe.model.layers else 0.0)


def _measured_attention(recipe: Recipe, work: Work, surface: Surface, rates: Rates) -> Value:
    """Forward time from a surface; with context parallelism each chunk of keys and values is a separate kernel."""
    chunks, head_dim = work.attention_chunks, 0.5 * (recipe.model.head_dim + recipe.model.value_dim)
    chunk_s = attention_s(surface, work.attention_flop / chunks, head_dim, work.attention_heads, work.attention_length)
    return chunks * chunk_s * (large_flop_per_s(surface) / rates.attention_flop_per_s)


def _merges(work: Work, rates: Rates) -> tuple[Value, Value]:
    """Forward and backward time to add up the chunks under context parallelism.

    The forward pass adds up the results of all chunks of keys and values, the backward pass the gradients of q, k, v.
    """
    at = work.at
    if (at.cp == 1).all():
        return 0.0, 0.0
    element_s = (at.cp - 1.0) * MERGE_BYTES * rates.fusion_ratio / rates.memory_bytes_per_s
    return work.attention_out * element_s, work.head_elements * element_s


def _memory(recipe: Recipe, work: Work, rates: Rates, moe: bool) -> Value:
    each = recipe.policy.activation_bytes
    norm = rates.norm_passes + (rates.dropout_passes if recipe.dropout else 0.0)
    if recipe.autocasts:
        norm = norm * rates.autocast_ratio
    elements = work.split_elements * norm + recipe.model.attention_share * work.head_elements * rates.qkv_passes
    elements = elements + (work.expert_elements if moe else work.ffn_elements) * rates.ffn_passes
    if moe:
        elements = elements + work.routed_elements * rates.moe_passes
    return elements * each * rates.fusion_ratio / rates.memory_bytes_per_s


def _scan_s(recipe: Recipe, work: Work, rates: Rates) -> Value:
    """Time of linear attention between its products, forward and backward: convolution, scan and gated norm.

    The scans of Mamba-1 and KDA are assumed to need as many passes as those from which `scan_passes` was fitted
    (Mamba-2). A short convolution without a scan is three fused operations on tensors of the size of its values: two
    gates, and the convolution. Each is assumed to need as many passes as the activation of a feed-forward block.
    """
    linear = recipe.model.linear
    if linear is None:
        return 0.0
    passes = rates.scan_passes if linear.scans else rates.ffn_passes
    moved_bytes = work.scan_elements * recipe.policy.activation_bytes * passes * rates.fusion_ratio
    return moved_bytes / rates.memory_bytes_per_s


def launches_per_layer(recipe: Recipe, rates: Rates) -> Value:
    """Kernels launched per layer, forward and backward, averaged over layers; routing and adapters add small ones."""
    launched = rates.kernels_per_layer + recipe.model.moe_share * rates.kernels_per_moe_layer
    if not recipe.adapted:
        return launched
    return launched + sum(weight.met for weight in recipe.adapted) * rates.kernels_per_adapter


ADAPTER_PRODUCTS = 3.0
"""Products of an adapter's matrix: forward, input gradient and weight gradient."""


def layer_time(recipe: Recipe, work: Work, rates: Rates) -> LayerTime:
    """Time of the model's mean layer: the average of dense and MoE layers, weighted by their numbers."""
    moe_share = recipe.model.moe_share
    forward: Value = 0.0
    total: Value = 0.0
    casts: Value = 0.0
    memory: Value = 0.0
    accumulate: Value = 0.0
    unpack: Value = 0.0
    for ops, weight, moe in ((work.dense_layer, 1.0 - moe_share, False), (work.moe_layer, moe_share, True)):
        if weight > 0:
            products = product_times(ops, recipe, rates)
            forward, total = forward + weight * products.forward, total + weight * products.total
            casts = casts + weight * sum((cast_s(op, recipe, rates) for op in ops), 0.0)
            memory = memory + weight * _memory(recipe, work, rates, moe)
            accumulate = accumulate + weight * _accumulate_s(ops, recipe, rates)
            unpack = unpack + weight * _unpack_s(ops, recipe, rates)
    attention = attention_time(recipe, work, rates).of_mean_layer(recipe.model.attention_share)
    gaps = launches_per_layer(recipe, rates) * rates.kernel_s
    memory = memory + attention.scores + casts + gaps + _adapters_s(recipe, work, rates) + _scan_s(recipe, work, rates)
    norms = _magnitudes_s(recipe, work.at, rates)
    memory_forward = memory * FORWARD_SHARE + unpack + norms
    reference_passes, backward_share = recipe.forward_passes - 1.0, recipe.backward_share
    memory_backward = memory * (1.0 - FORWARD_SHARE) + unpack
    return LayerTime(
        matmul=total,
        matmul_forward=forward,
        attention=attention.forward * (1.0 + reference_passes) + backward_share * (attention.total - attention.forward),
        attention_forward=attention.forward,
        memory=memory_forward * (1.0 + reference_passes)
        + backward_share * memory_backward
        + recipe.weight_gradient_share * accumulate,
        memory_forward=memory_forward,
        scores_forward=attention.scores * FORWARD_SHARE,
    )


def _adapters_s(recipe: Recipe, work: Work, rates: Rates) -> Value:
    """Time of the adapters of one layer, forward and backward.

    Products of a small rank are bound by their operand traffic. The inputs and outputs of an adapted weight are read
    and written by the products with both small matrices, by the scaling and by the addition to the frozen weight's
    output. Only at a rank of some hundreds does the arithmetic take longer.
    """
    if not recipe.adapted:
        return 0.0
    sizes = work.tokens * sum(weight.met * (weight.inputs + weight.outputs) for weight in recipe.adapted) / work.at.tp
    moved_bytes = sizes * rates.adapter_passes * rates.fusion_ratio * recipe.policy.activation_bytes
    flop = 2.0 * ADAPTER_PRODUCTS * recipe.lora_rank * sizes
    longer: Value = np.maximum(moved_bytes / rates.memory_bytes_per_s, flop / rates.other_flop_per_s)
    return longer


def _magnitudes_s(recipe: Recipe, at: Layouts, rates: Rates) -> Value:
    """Time of DoRA's weight norms of one layer for one forward pass.

    The whole sum of weight and adapter is written out and then read once more.
    """
    if not recipe.how.decomposed:
        return 0.0
    weights: Value = 0.0
    for weight in recipe.adapted:
        ranks = at.ep * expert_tp(recipe, at) if weight.routed else at.tp
        weights = weights + weight.copies * weight.inputs * weight.outputs / ranks
    return weights * rates.magnitude_passes * recipe.policy.activation_bytes / rates.memory_bytes_per_s


def _accumulate_s(ops: tuple[MatMul, ...], recipe: Recipe, rates: Rates) -> Value:
    """Time to read, add to and write the accumulated weight gradients, once per micro-batch."""
    if recipe.how.adapts:
        return 0.0
    return _weights(ops) * 2.0 * recipe.policy.gradient_bytes / rates.memory_bytes_per_s


def _unpack_s(ops: tuple[MatMul, ...], recipe: Recipe, rates: Rates) -> Value:
    """Time to unpack 4-bit weights for one pass; needed in the forward pass and again for the input gradients."""
    if not recipe.how.low_bits:
        return 0.0
    return _weights(ops) * rates.unpacked_bytes / rates.memory_bytes_per_s


def _weights(ops: tuple[MatMul, ...]) -> Value:
    """Number of weights in a layer's products on this GPU."""
    weights: Value = 0.0
    for op in ops:
        weights = weights + op.n * op.k * op.mean_count
    return weights


def head_time(recipe: Recipe, work: Work, rates: Rates) -> HeadTime:
    """Time of the output layer (three products when trained), the vocabulary loss, and embedding gather and scatter."""
    model = recipe.model
    products = product_times((work.head,), recipe, rates, head_shares(recipe)).total
    passes = 1.0 + (recipe.forward_passes - 1.0) * FORWARD_SHARE
    loss = work.logit_elements * rates.logit_bytes * (recipe.policy.activation_bytes / 2.0) * passes
    embedding = 6.0 * work.tokens * model.hidden * recipe.policy.activation_bytes
    return HeadTime(matmul=products, memory=(loss + embedding) / rates.memory_bytes_per_s + END_GAPS * rates.kernel_s)
