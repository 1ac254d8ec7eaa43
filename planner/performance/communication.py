"""Communication time of a step that overlap does not hide, by axis (tensor, context, expert, pipeline, data).

The messages themselves are listed in `transfers`; the bus factors are from nccl-tests, `doc/PERFORMANCE.md`.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from planner.hardware.cluster import Cluster
from planner.lazy import dataclass
from planner.parallelism.layout import FULL_SHARE, Layouts
from planner.performance.compression import coding_s
from planner.performance.compute import LayerTime
from planner.performance.operations import Array, Work, expert_tp
from planner.performance.shards import Shards, gathered_bytes, reduced_bytes, trained_share
from planner.performance.transfers import (
    Transfer,
    ZeroPasses,
    context_transfers,
    data_parallel_transfers,
    expert_transfers,
    stage_transfer,
    tensor_transfers,
    zero_passes,
)
from planner.rates.terms import Rates, Value
from planner.training.recipe import Recipe

MOST_BOUNDARIES = 2
"""Most boundaries at which a pipeline stage waits: two for an inner stage, one in a pipeline of two stages."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerComm:
    """Exposed seconds of communication of one layer and micro-batch, and of a message to the next stage."""

    tp: Value
    cp: Value
    ep: Value
    send: Value
    """Exposed time of one activation and one gradient message between stages (0 without a pipeline)."""

    @property
    def total(self) -> Value:
        """Exposed communication inside the layer."""
        return self.tp + self.cp + self.ep


def _summed(times_s: Iterable[Value]) -> Array:
    return np.atleast_1d(np.asarray(sum(times_s, 0.0), dtype=np.float64))


def _sent_s(recipe: Recipe, cluster: Cluster, work: Work, at: Layouts, rates: Rates) -> Value:
    """Exposed time of one activation and its gradient between stages, including the stalls of blocking sends.

    Either all sends of a job stall or none do. They stall in jobs of at least `stall_gpus` GPUs, a drawn number.
    """
    transfer = stage_transfer(recipe, cluster, work, at, rates)
    stalls = transfer.group.crosses & (at.gpus >= rates.stall_gpus)
    stall = np.where(stalls, np.minimum(at.pp - 1, MOST_BOUNDARIES) * rates.send_stall_s, 0.0)
    return np.where(at.pp == 1, 0.0, transfer.exposed_s + stall)


def layer_comm(recipe: Recipe, cluster: Cluster, work: Work, at: Layouts, layer: LayerTime, rates: Rates) -> LayerComm:
    """Exposed communication inside a layer, `[layout]` or `[draw]`; `layer` is by split, `[split]`."""
    where, splits = (recipe, cluster, work.tokens, work.at), work.splits
    products_s = split_product_s(recipe, work.at, layer)
    tensor, expert = tensor_transfers(*where, products_s, rates), expert_transfers(*where, rates)
    context = context_transfers(*where, rates)
    recomputed_share = FULL_SHARE[at.act_ckpt]
    recomputed_attention = recipe.backward_share * recomputed_share * splits.spread(layer.attention_forward)
    attention = splits.spread(layer.attention) + recomputed_attention

    def passed(forward_s: Iterable[Value], busy_s: Iterable[Value]) -> Value:
        return in_passes(recipe, recomputed_share, splits.spread(_summed(forward_s)), splits.spread(_summed(busy_s)))

    ring, exchanged = (
        passed((each.forward_times * each.once_s for each in transfers), (each.busy_s for each in transfers))
        for transfers in (
            [each for each in context if each.carries != "scan_inputs"],
            [each for each in context if each.carries == "scan_inputs"],
        )
    )
    return LayerComm(
        tp=passed((each.exposed_forward_s for each in tensor), (each.exposed_s for each in tensor)),
        cp=np.maximum(ring - rates.overlap_cp_ratio * attention, 0.0) + exchanged,
        ep=passed((each.exposed_forward_s for each in expert), (each.exposed_s for each in expert)),
        send=_sent_s(recipe, cluster, work, at, rates),
    )


def split_product_s(recipe: Recipe, at: Layouts, layer: LayerTime) -> Value:
    """Forward time of one product that takes a whole input and splits its output, in the shape of `layer`.

    A layer has two such products: to queries, keys and values, and into the MLP; the time is their mean. With experts
    that are not split, only the first counts.
    """
    model = recipe.model
    mixer = model.mixer_params - model.mixer_out_params
    layer_params = model.layer_params_moe_active if model.experts else model.layer_params_dense
    mlp = (layer_params - model.mixer_params) * (1.0 - 1.0 / model.mlp_matrices)
    split = (expert_tp(recipe, at) == at.tp) | (model.experts == 0)
    return layer.matmul_forward * np.where(split, (mixer + mlp) / 2.0, mixer) / layer_params


def in_passes(recipe: Recipe, recomputed_share: Value, forward: Value, forward_and_backward: Value) -> Value:
    """Count or time of the messages inside a layer, over all of its passes.

    Args:
        recipe: the model and how it is trained. A reference model runs forward only; frozen layers have no backward
            pass.
        recomputed_share: share of the forward pass that recomputation repeats before the backward pass.
        forward: count or time for one forward pass.
        forward_and_backward: count or time for one forward and one backward pass.
    """
    result: Value = recipe.forward_passes * forward + recipe.backward_share * (
        forward_and_backward - forward + recomputed_share * forward
    )
    return result


def _copies_s(recipe: Recipe, shards: Shards, at: Layouts, passes: ZeroPasses, rates: Rates) -> Value:
    """Time of FSDP's copies of parameters out of the gather buffer and gradients into the reduce buffer.

    Each copy is a read and a write.
    """
    params = shards.dense(last=False) + shards.expert(last=False)
    reduced = 0.0 if recipe.how.adapts else reduced_bytes(recipe, at) * trained_share(recipe)
    moved_bytes = passes.gathers * gathered_bytes(recipe, at) + passes.scatters * reduced
    return 2.0 * params * moved_bytes / rates.memory_bytes_per_s


def _chunks_behind(at: Layouts) -> Value:
    """Micro-batches of compute that one gradient reduction can hide behind.

    Without interleaving it is one: the last micro-batch's backward pass, bucket by bucket. With `vp` chunks, a stage
    finishes a chunk's gradients `pp` micro-batches before the next chunk's, so all but the last chunk have that much.
    """
    return np.where(at.vp > 1, np.maximum(np.minimum(at.grad_accum, at.pp) * (at.vp - 1.0) / at.vp, 1.0), 1.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class DataParallel:
    """Gradient reduction and parameter gathering of one step, `[layout]` or `[draw]`."""

    transfers: tuple[Transfer, ...]
    exposed_s: Value
    """Time of the transfers that compute does not hide."""
    beside_s: Value
    """Slowdown of overlapped compute, copies in and out of buffers, and coding of compressed gradients."""

    @property
    def total_s(self) -> Value:
        """Time that data parallelism adds to the step."""
        return self.exposed_s + self.beside_s


def data_parallel(
    recipe: Recipe, cluster: Cluster, shards: Shards, at: Layouts, micro_batch_s: Value, rates: Rates
) -> DataParallel:
    """Exposed gradient reduction and parameter gathering of one step.

    Transfers of every micro-batch (ZeRO 2, and ZeRO 3 without a pipeline) hide behind the compute of all micro-batches.
    Transfers once per step hide behind the compute at its end; under ZeRO 1 only as far as the stack overlaps them. The
    last bucket or module is always exposed.

    Args:
        recipe: the model and how it is trained.
        cluster: the machines.
        shards: parameters of a GPU.
        at: the layouts.
        micro_batch_s: time of a micro-batch on the slowest stage.
        rates: mid values or draws.
    """
    passes = zero_passes(recipe, at)
    transfers = data_parallel_transfers(recipe, cluster, shards, at, passes, rates)
    busy = _summed(transfer.busy_s for transfer in transfers)
    window = micro_batch_s * np.where(passes.each_micro_batch, at.grad_accum, _chunks_behind(at))
    tail = busy / (shards.layers_most + 1.0) / passes.scatters
    hidden = rates.overlap_dp_ratio * np.where(at.zero == 1, rates.zero1_overlap_ratio, 1.0)
    exposed = np.maximum(busy - hidden * window, tail)
    copies = np.where(at.zero == 3, _copies_s(recipe, shards, at, passes, rates), 0.0)
    coding = coding_s(recipe, shards.trained(last=False), rates)
    beside = rates.interference_ratio * np.minimum(busy, window) + copies + coding
    # Where experts use tensor parallel ranks, several ranks may hold the same experts without data parallelism.
    copied = (at.dp * at.cp > 1) | ((shards.expert_ranks > 1) & (shards.expert_per_layer > 0))
    return DataParallel(
        transfers=transfers, exposed_s=np.where(copied, exposed, 0.0), beside_s=np.where(copied, beside, 0.0)
    )
