"""Communication of a step by axis (tensor, context, expert, pipeline, data): what is exposed after overlap counts.

Bytes per axis: Korthikanti et al. 2022 (tensor and sequence parallel), Rajbhandari et al. 2020 (ZeRO), Megatron-LM docs
(context parallel), GShard (expert parallel); bus factors: nccl-tests `doc/PERFORMANCE.md`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from planner.hardware.cluster import Cluster
from planner.parallelism.layout import Layouts
from planner.parallelism.slowest import busiest_ratio
from planner.performance.collectives import all_reduce_s, all_to_all_s, gather_s, place, scatter_s, send_s
from planner.performance.compute import LayerTime
from planner.performance.operations import EACH_ALONE, Array, Work, expert_tp
from planner.performance.shards import Shards, trained_share
from planner.rates.terms import Rates, Value
from planner.training.recipe import Recipe

STALL_GPUS = 512.0
"""Size of the job for which `send_stall_s` is stated."""
STALL_GROWTH = 2.0
"""Power of the number of GPUs by which blocking sends stall: both the links that may be slow and the ranks that wait
for one grow with it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerComm:
    """Exposed communication of one layer and micro-batch, and one message to the next stage."""

    tp: Value
    tp_forward: Value
    cp: Value
    ep: Value
    send: Value
    """Exposed time of one activation and one gradient message between stages (0 without a pipeline)."""

    @property
    def total(self) -> Value:
        """Inside the layer."""
        return self.tp + self.cp + self.ep


def _tensor(recipe: Recipe, cluster: Cluster, tokens: Array, at: Layouts, rates: Rates) -> tuple[Array, Array]:
    """Exposed seconds forward and in all: two reductions forward, two backward (MoE: attention's only, if unsplit)."""
    group = place(at.tp, 1, cluster.nvlink_domain)
    payload = tokens * recipe.model.hidden * recipe.policy.activation_bytes
    if recipe.sequence_parallel:
        # Gather and scatter around attention and MLP, and the input gathered again for the weight gradient.
        once = gather_s(payload, group, rates)
        pair, again = once + scatter_s(payload, group, rates), once if recipe.trains_all else 0.0 * once
    else:
        pair, again = all_reduce_s(payload, group, rates), 0.0
    hidden = 1.0 - rates.overlap_tp_ratio
    blocks = np.where((expert_tp(recipe, at) < at.tp) & (recipe.model.experts > 0), 1.0, 2.0)
    forward = blocks * pair * hidden
    # The second gather runs beside the input gradient's product.
    backward = blocks * pair * hidden + blocks * again * (1.0 - rates.overlap_dp_ratio) * hidden
    alone = at.tp == 1
    return np.where(alone, 0.0, forward), np.where(alone, 0.0, forward + backward)


def _context(recipe: Recipe, cluster: Cluster, tokens: Array, at: Layouts, rates: Rates) -> Array:
    """Keys and values gathered forward and again backward, their gradients scattered: 3 passes of the sequence."""
    model = recipe.model
    group = place(at.cp, at.tp, cluster.nvlink_domain)
    kv_heads = model.kv_heads / np.minimum(at.tp, model.kv_heads)
    width = kv_heads * (model.head_dim + model.value_dim)
    payload = tokens * at.cp * width * recipe.policy.activation_bytes
    return np.where(at.cp == 1, 0.0, 2.0 * gather_s(payload, group, rates) + scatter_s(payload, group, rates))


def _expert(recipe: Recipe, cluster: Cluster, tokens: Array, at: Layouts, rates: Rates) -> Array:
    """Dispatch and combine, forward and backward: four all-to-all of the routed tokens, mean over all layers."""
    model = recipe.model
    if not model.experts:
        return np.zeros(1)
    etp = expert_tp(recipe, at)
    stride = np.where(etp < at.tp, 1, at.tp)
    group = place(at.ep, stride, cluster.nvlink_domain)
    split = at.tp if recipe.sequence_parallel else 1
    send = tokens / split * model.top_k * model.hidden * recipe.policy.activation_bytes
    domains = np.maximum(group.size / group.inside, 1.0)
    # A token's k experts lie on fewer than k domains: expected share of distinct ones, (1-(1-1/D)^k) D/k.
    distinct = (1.0 - (1.0 - 1.0 / domains) ** model.top_k) * domains / model.top_k
    once = all_to_all_s(
        send * busiest_ratio(model, at.ep, rates.expert_load_sd_ratio), group, rates, np.minimum(distinct, 1.0)
    )
    share = model.moe_layers / model.layers
    return np.where(at.ep == 1, 0.0, 4.0 * once * (1.0 - rates.overlap_ep_ratio) * share)


def _send(recipe: Recipe, cluster: Cluster, work: Work, at: Layouts, rates: Rates) -> Value:
    inner = at.tp * at.cp * at.dp
    crosses = inner * at.pp > cluster.nvlink_domain
    split = at.tp if recipe.sequence_parallel else 1
    message = work.tokens * recipe.model.hidden * recipe.policy.activation_bytes / split
    # Without interleaving the schedule waits for each message; with it, transfers run behind other chunks.
    hidden = np.where(at.vp > 1, rates.overlap_pp_ratio, rates.overlap_pp_ratio * 0.5)
    stall = np.where(crosses, rates.send_stall_s * (at.gpus / STALL_GPUS) ** STALL_GROWTH, 0.0)
    return np.where(at.pp == 1, 0.0, 2.0 * (send_s(message, crosses, rates) * (1.0 - hidden) + stall))


def layer_comm(recipe: Recipe, cluster: Cluster, work: Work, at: Layouts, layer: LayerTime, rates: Rates) -> LayerComm:
    """Exposed communication inside a layer, `[layout]` or `[draw]`; that of layouts which split it alike only once."""
    splits = EACH_ALONE if rates.drawn else work.splits  # layouts under draws of their own share nothing
    where = (recipe, cluster, splits.distinct(work.tokens), splits.layouts(at))
    forward, tensor = _tensor(*where, rates)
    context = splits.spread(_context(*where, rates))
    return LayerComm(
        tp=splits.spread(tensor),
        tp_forward=splits.spread(forward),
        cp=np.maximum(context - rates.overlap_cp_ratio * layer.attention, 0.0),
        ep=splits.spread(_expert(*where, rates)),
        send=_send(recipe, cluster, work, at, rates),
    )


def _copies_s(recipe: Recipe, shards: Shards, gathers: Value, scatters: Value, rates: Rates) -> Value:
    """FSDP copies parameters out of the gather buffer and gradients into the reduce buffer: read and write each."""
    policy = recipe.policy
    params = shards.dense(last=False) + shards.expert(last=False)
    reduced = policy.reduce_bytes if recipe.trains_all else 0.0
    return 2.0 * params * (gathers * policy.gather_bytes + scatters * reduced) / rates.memory_bytes_per_s


def _between_replicas_s(
    recipe: Recipe, cluster: Cluster, shards: Shards, at: Layouts, trained: float, rates: Rates
) -> Value:
    """Hybrid sharding: the groups that each hold a whole copy all-reduce their gradient shards once per step."""
    if np.all(at.replicas == 1):
        return 0.0
    ranks = np.maximum(1, at.dp * at.cp // at.replicas)
    group = place(at.replicas, at.tp * ranks, cluster.nvlink_domain)
    shard = (shards.dense(last=False) / shards.dense_ranks) + (shards.expert(last=False) / shards.expert_ranks)
    return np.where(at.replicas == 1, 0.0, all_reduce_s(shard * recipe.policy.reduce_bytes * trained, group, rates))


def _chunks_behind(at: Layouts) -> Value:
    """Micro-batches of compute that one gradient reduction can hide behind.

    One without interleaving: the last micro-batch's backward, bucket by bucket. With `vp` chunks a stage finishes a
    chunk's gradients `pp` micro-batches before the next chunk's, so all but the last chunk have that long.
    """
    return np.where(at.vp > 1, np.maximum(np.minimum(at.grad_accum, at.pp) * (at.vp - 1.0) / at.vp, 1.0), 1.0)


def data_parallel_s(
    recipe: Recipe, cluster: Cluster, shards: Shards, at: Layouts, micro_batch_s: Value, rates: Rates
) -> Value:
    """Exposed gradient reduction and parameter gathering of one step.

    ZeRO 0: one all-reduce; 1: reduce-scatter and all-gather, once; 2: a reduce-scatter per micro-batch, since no
    rank keeps the whole gradient, and one all-gather; 3: two gathers (one without resharding) and one scatter per
    micro-batch, behind all of its compute, but under a pipeline one of each per step, since parameters stay gathered
    and gradients whole over its micro-batches. With LoRA only the adapters are reduced, and gathered after the update.
    """
    policy = recipe.policy
    dense = place(at.dp * at.cp // at.replicas, at.tp, cluster.nvlink_domain)
    expert_stride = at.ep * expert_tp(recipe, at)
    holders = np.maximum(1, at.tp * at.cp * at.dp // (expert_stride * at.replicas))
    experts = place(holders, expert_stride, cluster.nvlink_domain)
    trained = trained_share(recipe)
    reduce_s: Value = 0.0
    gather: Value = 0.0
    updated: Value = 0.0
    ring: Value = 0.0
    messages = shards.layers_most + 1.0  # a bucket or wrapped module is about a layer
    for params, group in ((shards.dense(last=False), dense), (shards.expert(last=False), experts)):
        if not np.any(params):
            continue
        reduce_s = reduce_s + scatter_s(params * policy.reduce_bytes * trained, group, rates, messages)
        gather = gather + gather_s(params * policy.gather_bytes, group, rates, messages)
        if not recipe.trains_all:
            updated = updated + gather_s(params * policy.gather_bytes * trained, group, rates, messages)
        ring = ring + all_reduce_s(params * policy.reduce_bytes * trained, group, rates, messages)
    every = (at.zero == 2) | ((at.zero == 3) & (at.pp == 1))
    scatters = np.where(every, at.grad_accum, 1.0)
    updated = gather if recipe.trains_all else updated
    gathers = scatters * np.where((at.pp == 1) & recipe.reshard_after_forward, 2.0, 1.0)
    busy = np.select(
        [at.zero == 0, at.zero == 3], [ring, gathers * gather + scatters * reduce_s], scatters * reduce_s + updated
    )
    window = micro_batch_s * np.where(every, at.grad_accum, _chunks_behind(at))
    busy = busy + _between_replicas_s(recipe, cluster, shards, at, trained, rates)
    tail = busy / (shards.layers_most + 1.0) / scatters
    exposed = np.maximum(busy - rates.overlap_dp_ratio * window, tail)
    copies = np.where(at.zero == 3, _copies_s(recipe, shards, gathers, scatters, rates), 0.0)
    slowed = rates.interference_ratio * np.minimum(busy, window) + copies
    return np.where(at.dp * at.cp == 1, 0.0, exposed + slowed)
