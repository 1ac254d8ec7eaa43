"""The collectives behind the step of one layout: bytes, ranks, time, bus bandwidth, exposed share and source."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

import numpy as np

from planner.hardware.cluster import Cluster
from planner.kernels.collectives import bus_bytes
from planner.lazy import dataclass
from planner.models.images.catalogue import network_of
from planner.parallelism.layout import FULL_SHARE, Layouts
from planner.performance.communication import data_parallel, in_passes, split_product_s
from planner.performance.images.step import image_coding_s, image_gradients, image_step
from planner.performance.operations import work_of
from planner.performance.shards import shard_params
from planner.performance.step import error_factor, slowest_stage
from planner.performance.transfers import (
    Transfer,
    context_transfers,
    expert_transfers,
    stage_transfer,
    tensor_transfers,
)
from planner.rates.terms import RateSet
from planner.training.recipe import Recipe
from planner.units import GB
from planner.used.kernels import only, six_digits


@dataclass(frozen=True, slots=True, kw_only=True)
class CollectiveUse:
    """One kind of message on the critical path of a step, as one GPU sees it."""

    item: str
    """Item of the step that it is part of: `tp_comm`, `cp_comm`, `ep_comm`, `pp_comm` or `dp_comm`."""
    operation: str
    """`all_reduce`, `all_gather`, `reduce_scatter`, `all_to_all` or `send`."""
    carries: str
    """Content of the message, one of `transfers.CARRIED`."""
    gpus: int
    """Number of GPUs that take part in one message."""
    domains: int
    """Number of NVLink domains (nodes, or racks of NVL72) that these GPUs span; 1: a single domain."""
    message_bytes: float
    """Size of one message as nccl-tests counts it: the whole, not one rank's part."""
    per_step: float
    """Number of messages on the critical path of a step, with those that recomputation repeats."""
    message_s: float
    """Time of one message."""
    bus_gb_per_s: float
    """Bus bandwidth, as nccl-tests counts it."""
    exposed_ratio: float
    """Share of its time that no compute hides; messages that are hidden together share it."""
    share_ratio: float
    """Share of the item's time. The rest up to 1 is not messages but compute that they slow down, copies and stalls."""
    evidence: str
    """Id of the source of the rate: a measured surface, or the row of the link or the network."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Axis:
    """The messages of one item of a step."""

    item: str
    transfers: Sequence[Transfer]
    times: float
    """How often a step repeats the unit that `Transfer.times` counts in: layer and micro-batch, chunk, or step."""
    exposed_s: float | None
    """Exposed time of all transfers per pass, where they are hidden together; None: each has its own exposed share."""
    item_s: float
    """Time of the item per pass."""


def collectives_used(recipe: Recipe, cluster: Cluster, at: Layouts, rates: RateSet) -> tuple[CollectiveUse, ...]:
    """Return every kind of message that a layout sends, at mid values.

    Args:
        recipe: what is trained.
        cluster: the machines.
        at: exactly one layout.
        rates: the terms, with their sources.
    """
    axes_of = _image_axes if recipe.model.has_network else _axes
    return tuple(
        _use(axis, transfer, rates)
        for axis in axes_of(recipe, cluster, at, rates)
        for transfer in axis.transfers
        if only(transfer.group.size) > 1 and only(transfer.times) > 0
    )


def _axes(recipe: Recipe, cluster: Cluster, at: Layouts, terms: RateSet) -> Iterator[_Axis]:
    rates = terms.sample()
    work, shards = work_of(recipe, at, rates), shard_params(recipe, at)
    stage = slowest_stage(recipe, cluster, work, shards, at, rates)
    comm, layout, where = stage.comm, at.at(0), (recipe, cluster, work.tokens, at, rates)
    passes, recomputed = layout.grad_accum * only(stage.layers), FULL_SHARE[int(at.act_ckpt[0])]

    def inside(transfers: Iterable[Transfer]) -> list[Transfer]:
        return [
            replace(transfer, times=in_passes(recipe, recomputed, transfer.forward_times, transfer.times))
            for transfer in transfers
        ]

    products_s = split_product_s(recipe, at, stage.layer)
    tensor = inside(tensor_transfers(recipe, cluster, work.tokens, at, products_s, rates))
    context, expert = (inside(transfers(*where)) for transfers in (context_transfers, expert_transfers))
    yield _Axis(item="tp_comm", transfers=tensor, times=passes, exposed_s=None, item_s=only(comm.tp))
    yield _Axis(item="cp_comm", transfers=context, times=passes, exposed_s=only(comm.cp), item_s=only(comm.cp))
    yield _Axis(item="ep_comm", transfers=expert, times=passes, exposed_s=None, item_s=only(comm.ep))
    if layout.pp > 1:
        sent, chunks = stage_transfer(recipe, cluster, work, at, rates), layout.grad_accum * layout.vp + layout.pp - 1
        yield _Axis(item="pp_comm", transfers=[sent], times=chunks, exposed_s=None, item_s=only(comm.send))
    data = data_parallel(recipe, cluster, shards, at, stage.total, rates)
    exposed, total = only(data.exposed_s), only(data.total_s)
    yield _Axis(item="dp_comm", transfers=data.transfers, times=1.0, exposed_s=exposed, item_s=total)


def _image_axes(recipe: Recipe, cluster: Cluster, at: Layouts, terms: RateSet) -> Iterator[_Axis]:
    """Yield the axis of a vision model, which reduces gradients and sends nothing else."""
    network, rates = network_of(recipe.model), terms.sample()
    item_s = only(image_step(network, recipe, cluster, at, rates).dp_comm) / only(error_factor(rates))
    exposed_s = item_s - only(image_coding_s(network, recipe, at, rates))
    reduced = image_gradients(network, recipe, cluster, at, rates)
    yield _Axis(item="dp_comm", transfers=[reduced], times=1.0, exposed_s=exposed_s, item_s=item_s)


def _use(axis: _Axis, transfer: Transfer, rates: RateSet) -> CollectiveUse:
    messages, group = only(transfer.messages), transfer.group
    gpus, message_bytes = only(group.size), only(transfer.payload_bytes) / messages
    message_s = only(transfer.once_s) / messages
    exposed = only(transfer.exposed_ratio)
    if axis.exposed_s is not None:
        exposed = axis.exposed_s / sum(only(other.busy_s) for other in axis.transfers)
    moved = message_bytes if transfer.operation == "send" else only(bus_bytes(transfer.operation, message_bytes, gpus))
    link = "nic_bytes_per_s" if bool(np.ravel(group.crosses)[0]) else "nvlink_bytes_per_s"
    return CollectiveUse(
        item=axis.item, operation=transfer.operation, carries=transfer.carries, gpus=int(gpus),
        domains=int(np.ceil(gpus / only(group.inside))), message_bytes=six_digits(message_bytes),
        per_step=six_digits(axis.times * only(transfer.times) * messages), message_s=six_digits(message_s),
        bus_gb_per_s=six_digits(moved / message_s / GB), exposed_ratio=six_digits(exposed),
        share_ratio=round(only(transfer.busy_s) * exposed / axis.item_s, 11) if axis.item_s else 0.0,
        evidence=rates.terms[link].evidence.id,
    )  # fmt: skip
