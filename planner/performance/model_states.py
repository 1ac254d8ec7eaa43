"""Bytes of weights, gradients and optimizer states of one pipeline stage, and of their temporary copies.

Sources: ZeRO (Rajbhandari et al. 2020, section 5); QLoRA (arXiv 2305.14314, section 3) for 4-bit weights; ZeRO-Offload
(arXiv 2101.06840, section 4) for data in host memory.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from planner.lazy import dataclass
from planner.parallelism.layout import Layouts
from planner.performance.shards import (
    Shards,
    frozen_weight_bytes,
    gathered_bytes,
    gathered_bytes_of_ends,
    reduced_bytes,
    shard_params,
)
from planner.rates.terms import Value
from planner.training.precision import PrecisionPolicy
from planner.training.recipe import Recipe

BUCKET_PARAMS = 1e9
"""DeepSpeed's reduce and all-gather buckets: 500 million elements each (configuration: `reduce_bucket_size`)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class States:
    """Bytes of one stage after ZeRO, `[layout]` each."""

    weights: Value
    gradients: Value
    """Accumulated gradients, without the copies that a reduction needs."""
    master_weights: Value
    optimizer_states: Value


@dataclass(frozen=True, slots=True, kw_only=True)
class TemporaryCopies:
    """Temporary copies of parameters, `[layout]` each."""

    held: Value
    """Gathered parameters and unreduced gradients that stay over all micro-batches of a step."""
    in_layer: Value
    """Copies in addition to `held` while a layer is run backward."""
    at_loss: Value
    """Copies in addition to `held` while the loss is computed."""
    of_head: Value
    """Copies in addition to `held` while the output layer is run backward."""


def states(recipe: Recipe, shards: Shards, at: Layouts, *, last: bool) -> States:
    """Weights, gradients, master weights and optimizer states of one stage."""
    policy = recipe.policy
    dense, expert = _gradient_params(recipe, shards, at, last)
    held = shards.per_rank(dense * shards.dense_share, expert * shards.expert_share, at.zero >= 2)
    gradients: Value = policy.gradient_bytes * held
    trained = updated_params(shards, at, last=last)
    on_gpu = 0.0 if recipe.offload == "optimizer" else 1.0
    return States(
        weights=_weights(recipe, shards, at, last),
        gradients=gradients,
        master_weights=trained * _master_bytes(recipe) * on_gpu,
        optimizer_states=trained * moment_bytes(recipe) * on_gpu,
    )


def updated_params(shards: Shards, at: Layouts, *, last: bool = False) -> Value:
    """Parameters that one GPU updates: its shard under ZeRO, otherwise all that it holds; with LoRA only adapters."""
    dense, expert = shards.dense(last) * shards.dense_share, shards.expert(last) * shards.expert_share
    return shards.per_rank(dense, expert, at.zero >= 1)


def offloaded_bytes(recipe: Recipe, at: Layouts) -> Value:
    """Bytes that one GPU of the first stage keeps in host memory, `[layout]`; 0 without an offloaded optimizer.

    DeepSpeed offloads FP32 weights, moments and the gradients that update them. FSDP also offloads its shards of all
    weights, including frozen ones.
    """
    if recipe.offload != "optimizer":
        return 0.0
    shards = shard_params(recipe, at)
    moved = _master_bytes(recipe) + moment_bytes(recipe) + recipe.policy.gradient_bytes
    weights = np.where(weights_on_host(recipe, at), weight_bytes(recipe, shards, at), 0.0)
    host_bytes: Value = updated_params(shards, at) * moved + weights
    return host_bytes


def gradient_copies(recipe: Recipe, shards: Shards, at: Layouts, *, last: bool) -> Value:
    """Bytes of gradients held in addition to the accumulated ones until they are summed or reduced.

    Megatron accumulates a weight gradient into its buffer within the matrix product itself and reduces the buffer in
    place. In other stacks autograd returns gradients in the type of the weights; if that is narrower than the
    accumulated type, both copies exist. DistributedDataParallel's buckets are as large as the gradients (its
    documentation says that `gradient_as_bucket_view` saves that much); DeepSpeed's buckets have a fixed size.
    """
    if recipe.kernels == "tuned":
        return 0.0
    policy = recipe.policy
    params = shards.trained(last)
    wider = sums_wider(policy)
    beside = params * policy.weight_bytes if wider else 0.0 * params
    each = policy.weight_bytes if wider else policy.reduce_bytes
    if recipe.stack == "classic":
        reduced = np.minimum(params, BUCKET_PARAMS) * policy.activation_bytes
    else:
        reduced = np.where(at.zero == 0, params * each, 0.0)
    return np.where(at.zero <= 1, beside, 0.0) + np.where(at.dp * at.cp > 1, reduced, 0.0)


def step_gradients(recipe: Recipe, shards: Shards, at: Layouts, *, last: bool) -> Value:
    """Bytes of FP32 gradients that the update casts from 16-bit gradients, for the parameters that this rank updates.

    DeepSpeed casts its whole partition before the step (`runtime/zero/stage_1_and_2.py`, `single_grad_partition`).
    """
    policy = recipe.policy
    if recipe.stack != "classic" or not policy.master_bytes > policy.gradient_bytes:
        return 0.0
    return updated_params(shards, at, last=last) * policy.master_bytes


def sums_wider(policy: PrecisionPolicy) -> bool:
    """Whether gradients are summed in a wider type than the weights' type, in which autograd returns them."""
    return policy.master_bytes > 0 and policy.gradient_bytes > policy.weight_bytes > 0


def temporary_copies(recipe: Recipe, shards: Shards, at: Layouts) -> TemporaryCopies:
    """Temporary copies under ZeRO-3: gathered parameters of two units at once, and unreduced gradients of one unit.

    The units are layers, and the output layer. The gradient of the output layer is unreduced while every activation is
    still kept. With a large vocabulary and few tokens, it is larger than the logits.
    """
    largest, two = largest_layers(recipe, shards)
    grads = 0.0 if recipe.how.adapts else reduced_bytes(recipe, at)
    gather = gathered_bytes(recipe, at)
    whole_stage = shards.layers_most * (shards.dense_per_layer + shards.expert_per_layer)
    keep: Value = 0.0 if recipe.reshard_after_forward else whole_stage * gather
    # Under a pipeline FSDP keeps parameters gathered and gradients unreduced over all micro-batches of a step.
    keep = np.where(at.pp > 1, whole_stage * (gather + grads), keep)
    sharded = (at.zero == 3) * 1.0
    head = recipe.model.head_params / at.tp
    at_loss = head * gathered_bytes_of_ends(recipe, at) + largest * gather
    return TemporaryCopies(
        held=sharded * keep,
        in_layer=sharded * (two * gather + largest * grads),
        at_loss=sharded * at_loss,
        of_head=sharded * (at_loss + head * (grads if recipe.trains_all else 0.0)),
    )


def largest_layers(recipe: Recipe, shards: Shards) -> tuple[Value, Value]:
    """Parameters on this GPU of the largest layer, and of the largest two neighbours, `[layout]` each.

    The equations use a mean layer. Where only some layers have routed experts, a layer with all of its experts has
    several times its size, and so has a unit that is gathered or whose gradients are reduced.
    """
    model, dense = recipe.model, shards.dense_per_layer
    if isinstance(shards.expert_per_layer, float):
        return dense, 2.0 * dense
    experts = shards.expert_per_layer / (model.held_share * model.moe_share)
    with_experts = 2.0 if model.moe_every == 1 and model.moe_layers > 1 else 1.0
    return dense + experts, 2.0 * dense + with_experts * experts


def kept_copies(recipe: Recipe, shards: Shards, at: Layouts, *, last: bool) -> Value:
    """Bytes of cast copies of a stage's linear weights that are kept between forward and backward pass.

    Autocast keeps its casts of trained weights (under ZeRO 3 they are already cast when gathered). Transformer Engine
    keeps FP8 weights in both layouts. Torchao casts a weight when it is used and keeps the original (`Float8Linear`).
    """
    layer = shards.dense_per_layer + shards.expert_per_layer
    if not _casts_weights(recipe):
        return 0.0 * layer
    layers = shards.layers_last if last else shards.layers_most
    return np.where(_keeps_casts(recipe, at), layers * layer * recipe.policy.low_weight_copy_bytes, 0.0)


def copies_at_work(recipe: Recipe, shards: Shards, at: Layouts) -> Value:
    """Bytes of cast weights of the layer being run; 4-bit weights are unpacked, then cast, one product at a time."""
    policy, model = recipe.policy, recipe.model
    layer = shards.dense_per_layer + shards.expert_per_layer
    into_mixer = 0 if model.linear is None else model.linear.outputs
    product = model.hidden * max(model.ffn_hidden or model.expert_ffn, into_mixer) / at.tp
    unpacked: Value = product * policy.activation_bytes if recipe.how.low_bits else 0.0
    if not _casts_weights(recipe):
        return unpacked + 0.0 * layer
    at_once = product if recipe.how.low_bits else 2.0 * layer
    kept = _keeps_casts(recipe, at) | policy.autocast
    return np.where(kept, 0.0, at_once * policy.low_weight_copy_bytes) + unpacked


def _casts_weights(recipe: Recipe) -> bool:
    """Whether linear weights are cast at all.

    Frozen weights are stored in the compute type and are cast only for narrower types; Megatron stores them in the
    narrow type, so with adapters it casts nothing.
    """
    if not recipe.policy.low_weight_copy_bytes or (recipe.how.adapts and recipe.fused):
        return False
    return recipe.trains_all or recipe.policy.narrow


def _keeps_casts(recipe: Recipe, at: Layouts) -> npt.NDArray[np.bool_]:
    """Whether casts of trained weights stay until the backward pass, `[layout]`."""
    keeps = not recipe.how.adapts and (recipe.fused or not recipe.policy.narrow)
    return np.asarray((at.zero != 3) & keeps)


def _weights(recipe: Recipe, shards: Shards, at: Layouts, last: bool) -> Value:
    """Bytes of a stage's weights that are kept on the GPU, `[layout]`."""
    weights = weight_bytes(recipe, shards, at, last=last)
    return np.where(weights_on_host(recipe, at), 0.0, weights) if _moves_weights(recipe) else weights


def _moves_weights(recipe: Recipe) -> bool:
    """Whether some layout keeps its weights on the host: offloading by FSDP."""
    return recipe.offload == "optimizer" and recipe.stack != "classic"


def weights_on_host(recipe: Recipe, at: Layouts) -> npt.NDArray[np.bool_]:
    """Whether a shard of the weights is fetched from the host for every gather, `[layout]`.

    PyTorch's FSDP offloads parameters along with the optimizer (`CPUOffloadPolicy`); DeepSpeed's optimizer offload
    keeps them on the GPU. On one GPU, training of all weights uses FSDP only for this offloading. Adapters are trained
    without FSDP there, and 4-bit weights would have no shards (FSDP1 "is switching to use `NO_SHARD`",
    torch/distributed/fsdp/_init_utils.py).
    """
    moves = _moves_weights(recipe)
    shards = (at.dp * at.cp > 1) | (not recipe.how.adapts)
    return np.asarray((at.zero == 3) & shards & moves)


def weight_bytes(recipe: Recipe, shards: Shards, at: Layouts, *, last: bool = False) -> Value:
    """Bytes of one stage's weights after ZeRO, on the GPU or the host, `[layout]`.

    QLoRA packs the linear layers; embedding and output layer stay in the compute type, like all other frozen weights.
    When all weights are trained on pairs of answers (as in DPO), the initial weights are kept too, in the compute type.
    """
    policy = recipe.policy
    each = frozen_weight_bytes(recipe) or policy.weight_bytes or policy.master_bytes
    at_ends = policy.activation_bytes if recipe.how.adapts else each
    if recipe.trains_all and recipe.how.pairs:
        each, at_ends = each + policy.activation_bytes, at_ends + policy.activation_bytes
    layers, ends = (shards.layers_last, shards.last_extra) if last else (shards.layers_most, shards.first_extra)
    dense = layers * shards.dense_per_layer * each + ends * at_ends
    return shards.per_rank(dense, shards.expert(last) * each, at.zero == 3)


def _gradient_params(recipe: Recipe, shards: Shards, at: Layouts, last: bool) -> tuple[Value, Value]:
    """Dense and expert parameters whose gradients exist at once.

    With updates inside the backward pass, these are the parameters of the largest unit. The same holds where ZeRO-2 or
    3 offloads the optimizer and moves each gradient to the host as soon as it is reduced (ZeRO-Offload).
    """
    dense, expert = shards.dense(last), shards.expert(last)
    if not recipe.update_in_backward and recipe.offload != "optimizer":
        return dense, expert
    extra = shards.last_extra if last else shards.first_extra
    one_unit = recipe.update_in_backward | ((at.zero >= 2) & (recipe.offload == "optimizer"))
    largest = np.maximum(shards.dense_per_layer, extra)
    return np.where(one_unit, largest, dense), np.where(one_unit, shards.expert_per_layer, expert)


def _master_bytes(recipe: Recipe) -> float:
    """Bytes per trained parameter of the FP32 copies that only the optimizer uses; with LoRA, of the adapter weights.

    Adapters of 16-bit weights are kept in FP32 (`autocast_adapter_dtype` of Hugging Face PEFT), unless the policy keeps
    nothing in FP32.
    """
    if recipe.how.adapts:
        return max(recipe.policy.weight_bytes, recipe.policy.master_bytes)
    return recipe.policy.master_bytes if recipe.policy.weight_bytes else 0.0


def moment_bytes(recipe: Recipe) -> float:
    """State bytes per trained parameter that must stay on the GPU; paged states make room for anything else."""
    optimizer = recipe.optimizer
    if optimizer.paged:
        return 0.0
    return optimizer.full_moments * recipe.policy.moment_bytes + optimizer.fixed_state_bytes
