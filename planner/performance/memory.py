"""Peak memory of one GPU, itemised, for every layout at once: the larger of the first and the last pipeline stage.

Sources: ZeRO (Rajbhandari et al. 2020, section 5) for the states; Korthikanti et al. 2022, table 2, for activations of
the GELU block with naive attention; the same count by hand for gated, fused-attention blocks.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np

from planner.parallelism.layout import ACT_CKPT, FULL_SHARE, Layouts
from planner.performance.operations import Work, count_work
from planner.performance.shards import Shards, shard_params, trained_share
from planner.rates.terms import Rates, Value
from planner.training.recipe import Recipe

SELECTIVE = ACT_CKPT.index("selective")

QLORA_WEIGHT_BYTES = 0.516
"""4-bit weights with double-quantised block constants: 4.127 bits (QLoRA, arXiv 2305.14314, section 3)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryItems:
    """Bytes at the peak by item (`plan.MEMORY_ITEMS`), `[layout]` or `[draw]`."""

    weights: Value
    gradients: Value
    master_weights: Value
    optimizer_states: Value
    activations: Value
    logits: Value
    fp8_copies: Value
    gathered_params: Value
    comm_buffers: Value
    framework: Value
    fragmentation: Value

    @property
    def total(self) -> Value:
        """What the driver shows as used."""
        result: Value = sum((getattr(self, f.name) for f in fields(self)), 0.0)
        return result

    @property
    def allocated(self) -> Value:
        """What the allocator hands out at the peak: without context, communicators and fragmentation."""
        return self.total - self.framework - self.comm_buffers - self.fragmentation

    @property
    def reserved(self) -> Value:
        """What the allocator holds: with fragmentation, without context and communicators."""
        return self.allocated + self.fragmentation

    def scaled(self, ratio: Value) -> MemoryItems:
        """Every item times a ratio."""
        return MemoryItems(**{f.name: getattr(self, f.name) * ratio for f in fields(self)})


def _input_bytes(recipe: Recipe) -> float:
    """Bytes per stored input of a linear layer: Transformer Engine keeps the low-precision copy, torchao the input."""
    policy = recipe.policy
    if not recipe.fused or policy.linear_compute not in ("fp8", "fp4"):
        return policy.activation_bytes
    return 1.0 if policy.linear_compute == "fp8" else 0.5


def stored_bytes_per_layer(recipe: Recipe, work: Work, at: Layouts, rates: Rates) -> tuple[Value, Value]:
    """Bytes one layer keeps for backward and one micro-batch, as checkpointed, and without checkpointing.

    Per token: two norm inputs and two product inputs of the hidden size (split under sequence parallelism), q, k, v and
    the attention output, the inner activations (3 of them gated, 2 plain), dropout masks of one byte, and with naive
    attention the probabilities, their dropout and its mask.
    """
    model, each = recipe.model, recipe.policy.activation_bytes
    hidden = work.split_elements
    inner = 3.0 if model.gated_mlp else 2.0
    share = model.moe_layers / max(model.layers, 1)
    ffn = (1.0 - share) * work.ffn_elements + share * work.expert_elements
    routed = share * work.tokens * model.hidden * model.top_k / np.maximum(at.tp, 1)
    attention_out = work.tokens * model.heads * model.value_dim / at.tp
    masks = 2.0 * hidden if recipe.dropout else 0.0
    # Inputs of the linear layers: two norms' outputs, the attention output, the activation's output, the routed rows.
    inputs = 2.0 * hidden + attention_out + ffn + routed
    others = 2.0 * hidden + work.head_elements + (inner - 1.0) * ffn + routed
    plain = others * each + inputs * _input_bytes(recipe) + masks
    scores: Value = 0.0
    if recipe.attention == "naive":
        scores = work.attention_scores * ((2.0 * each + 1.0) if recipe.dropout else each)
    none = (plain + scores) * rates.stored_activation_ratio
    selective: Value
    if recipe.attention == "naive":
        selective = plain * rates.stored_activation_ratio
    elif recipe.fused:
        selective = none - attention_out * each
    else:
        # Per-operation policy of torchtitan: half of the matrix products' outputs, attention, no element-wise results.
        selective = (2.0 * hidden + 0.5 * work.head_elements + attention_out + 0.5 * ffn * (inner - 1.0)) * each
    full = hidden * each
    whole_share = FULL_SHARE[at.act_ckpt]
    kept = np.where(at.act_ckpt == SELECTIVE, selective, none + whole_share * (full - none))
    return kept, none


def in_flight(at: Layouts, *, last: bool = False) -> Value:
    """Micro-batches whose activations a stage holds at most, `[layout]`; with interleaving not whole.

    1F1B: `pp` on the first stage, one on the last. Interleaved: before its first backward pass stage `r` has run
    `(vp - 1) pp + 2 (pp - 1 - r) + 1` chunks of `1 / vp` of its layers (Megatron-Core `schedules.py`, warm-up), which
    is `pp + (pp - 1) / vp` micro-batches on the first stage and `pp - (pp - 1) / vp` on the last. Never more than all.
    """
    warm_up = np.where(at.vp > 1, (at.vp - 1) * at.pp, 0) + (0 if last else (at.pp - 1) * np.where(at.vp > 1, 2, 1))
    return np.minimum((warm_up + 1.0) / at.vp, at.grad_accum)


def frozen_weight_bytes(recipe: Recipe) -> float | None:
    """Bytes per frozen weight: 4-bit with QLoRA, the compute type with LoRA; None where all weights are trained."""
    if recipe.method == "qlora":
        return QLORA_WEIGHT_BYTES
    return recipe.policy.activation_bytes if recipe.method == "lora" else None


def _gradient_params(recipe: Recipe, shards: Shards, last: bool) -> tuple[Value, Value]:
    """Dense and expert parameters whose gradients exist at once; with updates inside backward, of the largest unit."""
    if not recipe.update_in_backward:
        return shards.dense(last), shards.expert(last)
    extra = shards.last_extra if last else shards.first_extra
    return np.maximum(shards.dense_per_layer, extra), shards.expert_per_layer


def _states(recipe: Recipe, shards: Shards, at: Layouts, last: bool) -> tuple[Value, Value, Value, Value]:
    """Weights, gradients, master weights and optimizer states of one stage, after ZeRO."""
    policy, optimizer = recipe.policy, recipe.optimizer
    share = trained_share(recipe)
    weight = frozen_weight_bytes(recipe) or policy.weight_bytes or policy.master_bytes
    master = policy.master_bytes if policy.weight_bytes else 0.0
    moments = optimizer.full_moments * policy.moment_bytes + optimizer.fixed_state_bytes
    weights: Value = 0.0
    gradients: Value = 0.0
    trained: Value = 0.0
    held = _gradient_params(recipe, shards, last)
    kinds = ((shards.dense(last), shards.dense_ranks), (shards.expert(last), shards.expert_ranks))
    for (params, ranks), graded in zip(kinds, held, strict=True):
        weights = weights + params * weight / np.where(at.zero == 3, ranks, 1.0)
        gradients = gradients + graded * share * policy.gradient_bytes / np.where(at.zero >= 2, ranks, 1.0)
        trained = trained + params * share / np.where(at.zero >= 1, ranks, 1.0)
    if recipe.method in ("lora", "qlora"):
        master = policy.activation_bytes  # the adapters' own weights
    if recipe.offload == "optimizer":
        return weights, gradients, trained * 0.0, trained * 0.0
    return weights, gradients, trained * master, trained * moments


def _gathered(recipe: Recipe, shards: Shards, at: Layouts) -> Value:
    """ZeRO-3: parameters of two units and gradients of one, in the gather and reduce types."""
    policy = recipe.policy
    unit = shards.dense_per_layer + shards.expert_per_layer
    ends = np.maximum(shards.first_extra, shards.last_extra) / np.where(at.pp == 1, 2.0, 1.0)
    largest = np.maximum(unit, ends)
    grads = policy.reduce_bytes if recipe.trains_all else 0.0
    whole_stage = shards.layers_most * unit
    keep: Value = 0.0 if recipe.reshard_after_forward else whole_stage * policy.gather_bytes
    # Under a pipeline FSDP keeps parameters gathered and gradients unreduced over all micro-batches of a step.
    keep = np.where(at.pp > 1, whole_stage * (policy.gather_bytes + grads), keep)
    return np.where(at.zero == 3, (unit + largest) * policy.gather_bytes + largest * grads + keep, 0.0)


def _low_copies(recipe: Recipe, shards: Shards, at: Layouts, last: bool) -> Value:
    """Low-precision copies of the linear weights that live between forward and backward."""
    per_param = recipe.policy.low_weight_copy_bytes
    cached_cast = recipe.policy.linear_compute not in ("fp8", "fp4")
    if not per_param or (cached_cast and not recipe.trains_all):
        return 0.0  # frozen weights already lie in the compute type
    layers = shards.layers_last if last else shards.layers_most
    held = layers * (shards.dense_per_layer + shards.expert_per_layer)
    passing = 2.0 * (shards.dense_per_layer + shards.expert_per_layer)
    return np.where((at.zero == 3) | (recipe.method == "qlora"), passing, held) * per_param


def _alive(gradients: Value, activations: Value, recipe: Recipe, at: Layouts) -> Value:
    """Gradients that exist at the peak.

    PyTorch allocates them during backward, while activations are freed; so with one micro-batch per step the peak is
    the larger of the two. Accumulated gradients, and Megatron's gradient buffers, are there all the time.
    """
    if recipe.fused:
        return gradients
    return np.where(at.grad_accum == 1, np.maximum(gradients - activations, 0.0), gradients)


def _reduction_copies(recipe: Recipe, shards: Shards, at: Layouts, last: bool) -> Value:
    """A second copy of the gradients from which whole gradients are reduced; Megatron reduces its buffer in place.

    PyTorch's DistributedDataParallel holds its buckets beside the gradients (documentation: `gradient_as_bucket_view`
    saves as much as the gradients take). DeepSpeed flattens all FP16 gradients before the reduce-scatter of ZeRO-1
    (`runtime/zero/stage1.py`, `get_flat_sub_partitions`), and holds BF16 gradients beside the FP32 ones that it sums.
    """
    if recipe.stack == "tuned":
        return 0.0
    each = recipe.policy.activation_bytes if recipe.stack == "classic" else recipe.policy.reduce_bytes
    held = (shards.dense(last) + shards.expert(last)) * trained_share(recipe)
    return np.where((at.zero <= 1) & (at.dp * at.cp > 1), held * each, 0.0)


def _stage(recipe: Recipe, at: Layouts, work: Work, shards: Shards, rates: Rates, *, last: bool) -> MemoryItems:
    weights, gradients, master, states = _states(recipe, shards, at, last)
    kept, whole = stored_bytes_per_layer(recipe, work, at, rates)
    layers = shards.layers_last if last else shards.layers_most
    flights = in_flight(at, last=last)
    # While one layer is recomputed or run backward, all of its activations and their gradients exist once.
    working = np.where(FULL_SHARE[at.act_ckpt] > 0, whole, 0.25 * whole)
    if recipe.sequence_parallel:
        # A product's gathered input and its gradient, over the whole sequence.
        gathered_elements = np.where(at.tp > 1, 2.0 * work.tokens * recipe.model.hidden, 0.0)
        working = working + gathered_elements * recipe.policy.activation_bytes
    activations = kept * layers * flights + working
    if recipe.offload == "activations":
        activations = kept * 2.0 + working
    each = recipe.policy.activation_bytes
    per_logit = each if recipe.chunked_loss else rates.logit_stored_bytes + (each - 2.0)
    has_head = (at.pp == 1) | last
    logits = np.where(has_head, work.logit_elements * per_logit, 0.0)
    gathered = _gathered(recipe, shards, at)
    copies = _low_copies(recipe, shards, at, last)
    axes = (at.tp > 1) * 1.0 + (at.pp > 1) * 1.0 + (at.cp > 1) * 1.0 + (at.ep > 1) * 1.0 + (at.dp > 1) * 1.0
    framework = rates.context_bytes + np.zeros(len(at))
    gradients = _alive(gradients, activations + logits, recipe, at) + _reduction_copies(recipe, shards, at, last)
    allocated = weights + gradients + master + states + activations + logits + gathered + copies
    items = MemoryItems(
        weights=weights,
        gradients=gradients,
        master_weights=master,
        optimizer_states=states,
        activations=activations,
        logits=logits,
        fp8_copies=copies + np.zeros(len(at)),
        gathered_params=gathered,
        comm_buffers=axes * rates.nccl_bytes,
        framework=framework,
        fragmentation=allocated * rates.fragmentation_ratio,
    )
    return items.scaled(memory_left_out(rates))


def memory_left_out(rates: Rates) -> Value:
    """What the equations leave out of the memory: of one team's software, one GPU and model, and one run."""
    shared: Value = rates.memory_stack_error_ratio * rates.memory_gpu_error_ratio
    return shared * rates.memory_shape_error_ratio * rates.memory_error_ratio


def memory_items(recipe: Recipe, at: Layouts, rates: Rates) -> MemoryItems:
    """Itemised peak of the fullest pipeline stage, `[layout]` or `[draw]`."""
    work = count_work(recipe, at, rates.expert_imbalance_ratio)
    shards = shard_params(recipe, at)
    first = _stage(recipe, at, work, shards, rates, last=False)
    if np.all(at.pp == 1):
        return first
    final = _stage(recipe, at, work, shards, rates, last=True)
    fuller = np.asarray(final.total) > np.asarray(first.total)
    return MemoryItems(
        **{f.name: np.where(fuller, getattr(final, f.name), getattr(first, f.name)) for f in fields(MemoryItems)}
    )
