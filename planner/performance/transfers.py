"""The messages of a step by parallel axis: operation, bytes, group of ranks, count and time.

Sources of the bytes per axis: Korthikanti et al. 2022 (tensor and sequence parallel), Rajbhandari et al. 2020 (ZeRO),
Megatron-LM docs (context parallel), GShard (expert parallel).
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from planner.hardware.cluster import Cluster
from planner.lazy import dataclass
from planner.parallelism.layout import Layouts
from planner.parallelism.routing import copies_sent, crossing_ratio
from planner.parallelism.slowest import busiest_ratio
from planner.performance.collectives import RankGroup, all_reduce_s, all_to_all_s, gather_s, place_on, scatter_s, send_s
from planner.performance.compression import sent_bytes
from planner.performance.operations import Array, Work, expert_tp
from planner.performance.shards import Shards, gathered_bytes, reduced_bytes
from planner.rates.terms import Rates, Value
from planner.training.recipe import Recipe

LEAST_S = 1e-12
"""Lower bound of a message's time, which keeps ratios of times finite."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Transfer:
    """One kind of message of an axis, `[layout]` or `[draw]`."""

    operation: str
    """`all_reduce`, `all_gather`, `reduce_scatter`, `all_to_all` or `send`."""
    carries: str
    """The contents, one of `CARRIED`."""
    payload_bytes: Value
    """The whole payload, not one rank's part; for an all-to-all or a send, the bytes that one rank sends."""
    group: RankGroup
    once_s: Value
    """Time to send the payload once."""
    times: Value
    """How often it is sent: per layer and micro-batch; pipeline: per chunk and micro-batch; data parallel: per step."""
    forward_times: Value = 0.0
    """How many of these `times` are in the forward pass."""
    messages: Value = 1.0
    """Number of equal messages into which the payload is split."""
    exposed_ratio: Value = 1.0
    """Share of the time that compute does not hide, on axes where the share depends on the kind of message."""

    @property
    def busy_s(self) -> Value:
        """Total time, hidden or not."""
        return self.times * self.once_s

    @property
    def exposed_s(self) -> Value:
        """Time that compute does not hide."""
        return self.busy_s * self.exposed_ratio

    @property
    def exposed_forward_s(self) -> Value:
        """Time in the forward pass that compute does not hide."""
        return self.forward_times * self.once_s * self.exposed_ratio


CARRIED = (
    "activations", "inputs_again", "input_gradients", "keys_and_values", "key_and_value_gradients", "scan_inputs",
    "tokens", "stage_outputs", "parameters", "expert_parameters", "gradients", "expert_gradients", "gradient_shards",
)  # fmt: skip
"""Possible contents of a message."""


def tensor_transfers(
    recipe: Recipe, cluster: Cluster, tokens: Array, at: Layouts, product_s: Value, rates: Rates
) -> tuple[Transfer, ...]:
    """Tensor parallel messages of a layer: two reductions in the forward pass and two in the backward pass.

    MoE layers whose experts are neither split nor accompanied by shared experts have only the attention reductions.

    In the backward pass, the reduction of the input gradient overlaps with the product for the weight gradient, and the
    second gather of the input overlaps with the product for the input gradient (NVIDIA/Megatron-LM,
    `LinearWithGradAccumulationAndAsyncCommunication`). Products that are split to hide their messages write into their
    neighbours' memory, which works over NVLink but not over the network (Transformer Engine, `tp_comm_overlap`).

    Args:
        recipe: the model and how it is trained.
        cluster: the machines.
        tokens: tokens of a micro-batch on one GPU, `[layout]`.
        at: the layouts.
        product_s: time of one product that takes a whole input and splits its output, the most compute that a backward
            message can hide behind.
        rates: mid values or draws.
    """
    if (at.tp == 1).all():
        return ()
    group = place_on(cluster, at.tp)
    payload = tokens * recipe.model.hidden * recipe.policy.activation_bytes
    exposed = 1.0 - np.where(group.size <= group.linked, rates.overlap_tp_ratio, 0.0)
    whole_expert_share = recipe.model.moe_share if not recipe.model.shared_experts else 0.0
    blocks = np.where(expert_tp(recipe, at) < at.tp, 2.0 - whole_expert_share, 2.0)

    def beside(message: Transfer, carries: str) -> Transfer:
        """A message of the backward pass only, hidden behind a product where all weights are trained."""
        behind = np.minimum(1.0, product_s / np.maximum(message.once_s, LEAST_S)) if recipe.trains_all else 0.0
        exposed_ratio = exposed * (1.0 - rates.overlap_dp_ratio * behind)
        return replace(message, carries=carries, times=blocks, forward_times=0.0, exposed_ratio=exposed_ratio)

    if not recipe.sequence_parallel:
        reduce = Transfer(
            operation="all_reduce", carries="activations", payload_bytes=payload, group=group,
            once_s=all_reduce_s(payload, group, rates), times=blocks, forward_times=blocks, exposed_ratio=exposed,
        )  # fmt: skip
        return reduce, beside(reduce, "input_gradients")
    # A gather and a scatter around attention and MLP; the input is gathered again for the weight gradient.
    gather = Transfer(
        operation="all_gather", carries="activations", payload_bytes=payload, group=group,
        once_s=gather_s(payload, group, rates), times=2.0 * blocks, forward_times=blocks, exposed_ratio=exposed,
    )  # fmt: skip
    scatter = replace(gather, operation="reduce_scatter", once_s=scatter_s(payload, group, rates), times=blocks)
    second_gather = (beside(gather, "inputs_again"),) if recipe.trains_all else ()
    return gather, scatter, beside(scatter, "input_gradients"), *second_gather


def context_transfers(
    recipe: Recipe, cluster: Cluster, tokens: Array, at: Layouts, rates: Rates
) -> tuple[Transfer, ...]:
    """Context parallel messages: keys and values are gathered forward and backward, and their gradients are scattered.

    This adds up to 3 passes over the sequence. Linear attention exchanges parts of the sequence for heads, and back,
    and waits for both exchanges (NVIDIA/Megatron-LM, `megatron/core/ssm/mamba_context_parallel.py`). A short
    convolution needs only a few tokens of the next rank, which are not counted.
    """
    if (at.cp == 1).all():
        return ()
    model = recipe.model
    group = place_on(cluster, at.cp, at.tp)
    kv_heads = model.kv_heads / np.minimum(at.tp, model.kv_heads)
    width = kv_heads * (model.head_dim + model.value_dim)
    payload = tokens * at.cp * width * recipe.policy.activation_bytes
    times = model.attention_share
    gather = Transfer(
        operation="all_gather", carries="keys_and_values", payload_bytes=payload, group=group,
        once_s=gather_s(payload, group, rates), times=2.0 * times, forward_times=times,
    )  # fmt: skip
    scatter = Transfer(
        operation="reduce_scatter", carries="key_and_value_gradients", payload_bytes=payload, group=group,
        once_s=scatter_s(payload, group, rates), times=times,
    )  # fmt: skip
    linear = model.linear
    if linear is None or not linear.scans:
        return gather, scatter
    values = (2.0 + linear.gates) * linear.inner + linear.further_values
    width = values / at.tp + 2.0 * linear.scanned_keys(at.tp, at.cp)
    exchanged_bytes = tokens * width * recipe.policy.activation_bytes
    exchange = Transfer(
        operation="all_to_all", carries="scan_inputs", payload_bytes=exchanged_bytes, group=group,
        once_s=all_to_all_s(exchanged_bytes, group, rates, 1.0), times=2.0 * model.linear_share,
        forward_times=model.linear_share,
    )  # fmt: skip
    return gather, scatter, exchange


def expert_transfers(
    recipe: Recipe, cluster: Cluster, tokens: Array, at: Layouts, rates: Rates
) -> tuple[Transfer, ...]:
    """Expert parallel messages: dispatch and combine in both passes, averaged over all layers.

    A MoE layer has four all-to-all exchanges of the routed tokens.
    """
    model = recipe.model
    if not model.experts:
        return ()
    etp = expert_tp(recipe, at)
    group = place_on(cluster, at.ep, np.where(etp < at.tp, 1, at.tp))
    sequence_shards = at.tp if recipe.sequence_parallel else 1
    ranks, nodes = at.ep.astype(np.float64), np.maximum(group.size / group.inside, 1.0)
    copies = copies_sent(recipe.moe_dispatcher, model, ranks)
    sent_bytes = tokens / sequence_shards * copies * model.expert_width * recipe.policy.activation_bytes
    busiest = sent_bytes * busiest_ratio(model, at.ep, rates.expert_load_sd_ratio)
    crossing = crossing_ratio(recipe.moe_dispatcher, model, ranks, nodes)
    share = model.moe_share
    exchange = Transfer(
        operation="all_to_all", carries="tokens", payload_bytes=busiest, group=group,
        once_s=all_to_all_s(busiest, group, rates, crossing, forwards=recipe.moe_dispatcher == "deepep"),
        times=4.0 * share,
        forward_times=2.0 * share, exposed_ratio=1.0 - rates.overlap_ep_ratio,
    )  # fmt: skip
    return (exchange,)


def stage_transfer(recipe: Recipe, cluster: Cluster, work: Work, at: Layouts, rates: Rates) -> Transfer:
    """An activation and its gradient, sent between neighbouring pipeline stages.

    Stages are the outermost axis of the ranks, so neighbours are `tp * cp * dp` GPUs apart. Where a node holds several
    stages, the others wait for the stage at its edge, which has one neighbour inside the node and one outside.

    With sequence parallelism or in Megatron and its relatives, each tensor parallel rank sends only its part (Narayanan
    et al. 2021, arXiv 2104.04473, section 4.1; DeepSpeed's `PartitionedTensor`). Without sequence parallelism, the
    receiving stage gathers the parts again.
    """
    stride = at.tp * at.cp * at.dp
    crosses = stride * at.pp > cluster.near_gpus
    beyond = np.where(crosses, np.where(2 * stride <= cluster.near_gpus, 0.5, 1.0), 0.0)
    bridged = (stride * at.pp > cluster.linked_gpus) & (cluster.linked_gpus < cluster.near_gpus)
    whole_bytes = work.splits.spread(work.tokens) * recipe.model.hidden * recipe.policy.activation_bytes
    in_parts = recipe.sequence_parallel or recipe.fused
    message_bytes = whole_bytes / at.tp if in_parts else whole_bytes
    gather_time_s: Value = 0.0
    if in_parts and not recipe.sequence_parallel:
        gather_time_s = gather_s(whole_bytes, place_on(cluster, at.tp), rates)
    # Interleaving hides messages behind other chunks; without it the schedule waits for each, and half as much hides.
    hidden = np.where(at.vp > 1, rates.overlap_pp_ratio, rates.overlap_pp_ratio * 0.5)
    inside = np.where(crosses, 1.0, 2.0)
    linked = np.where(bridged, 1.0, inside)
    pair = RankGroup(size=np.full(1, 2.0), inside=inside, linked=linked, meshed=cluster.meshed_gpus)
    between, within = (send_s(message_bytes, outside, rates, bridged, pair.peer_share) for outside in (True, False))
    return Transfer(
        operation="send", carries="stage_outputs", payload_bytes=message_bytes, group=pair,
        once_s=beyond * between + (1.0 - beyond) * within + gather_time_s, times=2.0, forward_times=1.0,
        exposed_ratio=1.0 - hidden,
    )  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class ZeroPasses:
    """How often a step reduces gradients and gathers parameters, `[layout]`."""

    each_micro_batch: npt.NDArray[np.bool_]
    """Whether every micro-batch does so, rather than once per step."""
    scatters: Array
    """Number of gradient reductions."""
    gathers: Array
    """Number of parameter gathers under ZeRO 3."""


def zero_passes(recipe: Recipe, at: Layouts) -> ZeroPasses:
    """How often a step reduces gradients and gathers parameters, by ZeRO stage.

    ZeRO 2 reduces after every micro-batch, since no rank keeps the whole gradient. ZeRO 3 also gathers for each forward
    pass, including the reference model's, and with resharding once more for the layers that are run backward. Under a
    pipeline, ZeRO 3 does so once per step, because parameters stay gathered over the step's micro-batches.
    """
    each_micro_batch = (at.zero == 2) | ((at.zero == 3) & (at.pp == 1))
    scatters = np.where(each_micro_batch, at.grad_accum, 1.0)
    backward_gathers = np.where((at.pp == 1) & recipe.reshard_after_forward, recipe.backward_share, 0.0)
    gathers = scatters * (recipe.forward_passes + backward_gathers)
    return ZeroPasses(each_micro_batch=each_micro_batch, scatters=scatters, gathers=gathers)


def data_parallel_transfers(
    recipe: Recipe, cluster: Cluster, shards: Shards, at: Layouts, passes: ZeroPasses, rates: Rates
) -> tuple[Transfer, ...]:
    """Messages of the gradient reduction and parameter gathering of one step.

    ZeRO 0 needs one all-reduce, and so does ZeRO 1 with compressed gradients (as in DDP's hooks). ZeRO 1 and 2 need
    reduce-scatters and one all-gather; ZeRO 3 needs both, as often as `passes` says. With LoRA only the adapters are
    reduced, and gathered after the update. Under hybrid sharding, copies of the states all-reduce gradient shards.
    """
    dense = place_on(cluster, at.dp * at.cp // at.replicas, at.tp)
    parts: list[tuple[str, Value, float, RankGroup]] = [("", shards.dense(last=False), shards.dense_share, dense)]
    if recipe.model.moe_layers:
        expert_stride = at.ep * expert_tp(recipe, at)
        holders = np.maximum(1, at.tp * at.cp * at.dp // (expert_stride * at.replicas))
        experts = place_on(cluster, holders, expert_stride)
        parts.append(("expert_", shards.expert(last=False), shards.expert_share, experts))
    modules = shards.layers_most + 1.0  # a wrapped module is roughly one layer
    bucket = np.maximum(rates.bucket_elements, rates.bucket_rank_elements * at.dp * at.cp)
    messages = np.where(at.zero == 3, modules, np.ceil(np.maximum(1.0, shards.trained(last=False) / bucket)))
    compression = recipe.grad_compression
    all_reduces: Array = (at.zero <= (0 if compression is None else compression.most_zero)).astype(np.float64)
    scatters: Array = np.where(all_reduces > 0, 0.0, passes.scatters)
    gathers: Array = np.where(at.zero == 3, passes.gathers, (at.zero > 0).astype(np.float64))
    messages_per_reduce = 1.0 if compression is None else compression.messages
    kinds = (
        ("all_reduce", "gradients", all_reduce_s, sent_bytes(recipe, at), all_reduces, messages * messages_per_reduce),
        ("reduce_scatter", "gradients", scatter_s, reduced_bytes(recipe, at), scatters, messages),
        ("all_gather", "parameters", gather_s, gathered_bytes(recipe, at), gathers, messages),
    )
    transfers = tuple(
        Transfer(
            operation=operation,
            carries=f"{prefix}{contents}",
            payload_bytes=payload_bytes,
            group=group,
            once_s=seconds(payload_bytes, group, rates, parts_sent),
            times=times,
            messages=parts_sent,
        )
        for prefix, params, share, group in parts
        if np.any(params)
        for operation, contents, seconds, each_bytes, times, parts_sent in kinds
        if np.any(times)
        # ZeRO 3 gathers frozen parameters too; the other stages gather only the parameters that the update changed.
        for payload_share in (np.where((at.zero == 3) & (contents == "parameters"), 1.0, share),)
        for payload_bytes in (params * each_bytes * payload_share,)
        if np.any(payload_bytes)
    )
    return (*transfers, *_between_replicas(recipe, cluster, shards, at, rates))


def _between_replicas(
    recipe: Recipe, cluster: Cluster, shards: Shards, at: Layouts, rates: Rates
) -> tuple[Transfer, ...]:
    """All-reduce of hybrid sharding: groups that each hold a whole copy reduce their gradient shards once per step."""
    if (at.replicas == 1).all():
        return ()
    ranks = np.maximum(1, at.dp * at.cp // at.replicas)
    group = place_on(cluster, at.replicas, at.tp * ranks)
    dense = shards.dense(last=False) * shards.dense_share / shards.dense_ranks
    expert = shards.expert(last=False) * shards.expert_share / shards.expert_ranks
    payload = (dense + expert) * reduced_bytes(recipe, at)
    shared = Transfer(
        operation="all_reduce", carries="gradient_shards", payload_bytes=payload, group=group,
        once_s=all_reduce_s(payload, group, rates), times=np.where(at.replicas > 1, 1.0, 0.0),
    )  # fmt: skip
    return (shared,)
