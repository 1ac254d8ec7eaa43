"""Time of collectives from message size, number of ranks and placement of the ranks.

Inside an NVLink domain, times are as measured by operation, size and group (`planner.kernels.collectives`). Between
domains, and for GPUs whose links were not measured, a linear model is used: `t = latency + bytes on the bus / bus
bandwidth` (nccl-tests' factors: 2(n-1)/n for all-reduce, (n-1)/n for all-gather, reduce-scatter and all-to-all). Its
bandwidth term is that of the slowest level: links of one kind (NVLink, or PCIe in a node without NVLink), PCIe between
cards of a node that NVLink joins only in pairs, or the network. A group within one node never waits for the network.
Decision 0003 lists what the linear model leaves out.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from planner.hardware.cluster import Cluster
from planner.kernels.collectives import MOST_MEASURED, collective_s, large_bytes_per_s
from planner.kernels.surface import Surface
from planner.lazy import dataclass
from planner.rates.terms import Rates, Value

Array = npt.NDArray[np.float64]


MOST_HOPS = 64.0
"""Hops beyond which latency no longer grows linearly, since trees replace rings on many ranks."""
SWITCH_FROM = 4.0
"""Ranks in a domain above which NCCL reduces in the NVLink switch (interconnect.csv ic045 to ic054)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RankGroup:
    """The ranks of one parallel axis, per layout: `[layout]`."""

    size: Array
    """Ranks in the group."""
    inside: Array
    """Ranks of the group that reach each other without the network."""
    linked: Array
    """Of the `inside` ranks, those joined by one kind of link: NVLink, or PCIe in a node without NVLink."""
    meshed: int = 1
    """GPUs of which each pair has a link of its own; 1 if links lead to a switch."""

    @property
    def link_share(self) -> Array | float:
        """Share of a GPU's links that lead to ranks of its group: 1 behind a switch."""
        if self.meshed < 2:
            return 1.0
        return np.where(self.linked > 1, (self.linked - 1.0) / (self.meshed - 1.0), 1.0)

    @property
    def peer_share(self) -> float:
        """Share of a GPU's links that lead to one peer: 1 behind a switch."""
        return 1.0 / max(self.meshed - 1, 1)

    @property
    def fewest_inside(self) -> Array:
        """Ranks in the domain that holds the fewest, with the group spread evenly over as few domains as hold it."""
        return np.floor(self.size / np.ceil(self.size / self.inside))

    @property
    def crosses(self) -> npt.NDArray[np.bool_]:
        """Whether the axis needs the network."""
        return self.size > self.inside


def place(
    size: npt.NDArray[np.int64],
    stride: npt.NDArray[np.int64] | int,
    near: int,
    linked: int | None = None,
    meshed: int = 1,
) -> RankGroup:
    """Place groups of `size` ranks that are `stride` GPUs apart.

    Args:
        size: ranks in a group, `[layout]`.
        stride: GPUs from one rank of a group to the next.
        near: GPUs that reach each other without the network.
        linked: of the `near` GPUs, those joined by one kind of link; None for all of them.
        meshed: GPUs of which each pair has a link of its own; 1 if links lead to a switch.
    """
    inside = _ranks_within(near, size, stride)
    joined = inside if linked is None or linked == near else _ranks_within(linked, size, stride)
    return RankGroup(size=size.astype(np.float64), inside=inside, linked=joined, meshed=meshed)


def _ranks_within(gpus: int, size: npt.NDArray[np.int64], stride: npt.NDArray[np.int64] | int) -> Array:
    """Ranks of a group among `gpus` neighbouring GPUs: at least one, at most the whole group."""
    return np.asarray(np.minimum(np.maximum(gpus // np.asarray(stride), 1), size), dtype=np.float64)


def place_on(cluster: Cluster, size: npt.NDArray[np.int64], stride: npt.NDArray[np.int64] | int = 1) -> RankGroup:
    """Place groups of `size` ranks that are `stride` GPUs apart on a cluster."""
    return place(size, stride, cluster.near_gpus, cluster.linked_gpus, cluster.meshed_gpus)


def _latency(group: RankGroup, steps: Array | Value, rates: Rates) -> Value:
    """Latency of one collective: its start and its hops between ranks."""
    fixed = np.where(group.crosses, rates.nic_latency_s, rates.nvlink_latency_s)
    hops = np.minimum(steps, MOST_HOPS)
    result: Value = np.where(group.size > 1, fixed + hops * rates.hop_latency_s, 0.0)
    return result


def _reach_latency(group: RankGroup, steps: Array | Value, streamed_bytes: Array | Value | None, rates: Rates) -> Value:
    """Latency of one collective including the nodes it spans: per doubling of their number, and per node.

    The latency of trees grows with each doubling of the nodes (all-reduce over 2 to 16 nodes with InfiniBand), the
    latency of rings with each node that they pass. Over 2 to 64 nodes with EFA, both effects appear (`node_doubling_s`,
    `node_hop_s`). With EFA, a small message that follows others only incurs part of this latency, in proportion to its
    size (`node_latency_bytes`).

    Args:
        group: the ranks.
        steps: ranks that the message passes.
        streamed_bytes: size of a message that follows others on a separate stream; None if compute waits for it.
        rates: mid values or draws.
    """
    domains: Value = group.size / group.inside
    reach = np.log2(domains) * rates.node_doubling_s + (domains - 1.0) * rates.node_hop_s
    if streamed_bytes is not None:
        reach = reach * np.minimum(1.0, streamed_bytes / np.maximum(rates.node_latency_bytes, 1.0))
    return _latency(group, steps, rates) + reach


def _beyond(group: RankGroup, rates: Rates) -> Value:
    """Slowdown of groups that span more domains than were measured, relative to the linear model; 1 within them."""
    measured = rates.measured_domains
    if not np.any(measured):
        return 1.0
    doublings = np.log2(np.maximum(group.size / group.inside / measured, 1.0))
    ratio: Value = rates.beyond_measured_ratio**doublings
    return ratio


def _measured_s(
    operation: str, surface: Surface, payload_bytes: Array | Value, group: RankGroup, rates: Rates, messages: Value
) -> Value:
    """Measured time inside an NVLink domain, in `messages` equal messages.

    Groups larger than the largest measured one add latency for their further hops.
    """
    reference = rates.surface("all_gather") or surface
    slower = large_bytes_per_s(reference) / rates.nvlink_bytes_per_s
    message_s = collective_s(surface, operation, payload_bytes / messages, group.size) * slower
    rounds = 2.0 if operation == "all_reduce" else 1.0
    further = np.minimum(rounds * (group.size - 1.0), MOST_HOPS) - rounds * (MOST_MEASURED - 1.0)
    result: Value = messages * (message_s + np.maximum(further, 0.0) * rates.hop_latency_s)
    return result


def _with_measured(
    line_s: Value, operation: str, payload_bytes: Array | Value, group: RankGroup, rates: Rates, messages: Value = 1.0
) -> Value:
    """The measured time for groups inside an NVLink domain, and the linear model `line_s` for all other groups."""
    surface, inside = rates.surface(operation), (group.size > 1) & (group.size <= group.linked)
    if surface is None or not inside.any():
        return line_s
    if inside.all():
        return _measured_s(operation, surface, payload_bytes, group, rates, messages)
    where = np.flatnonzero(inside)  # few layouts, since most groups of a large cluster leave the domain
    within = RankGroup(size=group.size[where], inside=group.inside[where], linked=group.linked[where])
    measured_s = _measured_s(operation, surface, _at(payload_bytes, where), within, rates, _at(messages, where))
    shape = np.broadcast_shapes(np.shape(line_s), (1, *np.shape(measured_s)[1:]))
    result = np.array(np.broadcast_to(line_s, shape))
    result[where] = measured_s
    return result


def _at(values: Array | Value, where: npt.NDArray[np.intp]) -> Value:
    """Select values of some layouts; a single value for all layouts is returned as is."""
    array = np.asarray(values)
    return array if array.size == 1 else array[where]


def gather_s(
    payload_bytes: Array | Value, group: RankGroup, rates: Rates, messages: Array | Value | None = None
) -> Value:
    """Time of an all-gather of `payload_bytes` (the whole, not one rank's part).

    Args:
        payload_bytes: total of all messages.
        group: the ranks.
        rates: mid values or draws.
        messages: number of equal messages, sent one after another on a separate stream; None for a single message that
            compute waits for.
    """
    return _ring_s("all_gather", payload_bytes, group, rates, messages)


def scatter_s(
    payload_bytes: Array | Value, group: RankGroup, rates: Rates, messages: Array | Value | None = None
) -> Value:
    """Time of a reduce-scatter of `payload_bytes` (the whole, not one rank's part); arguments as in `gather_s`."""
    return _ring_s("reduce_scatter", payload_bytes, group, rates, messages)


def _ring_s(
    operation: str, payload_bytes: Array | Value, group: RankGroup, rates: Rates, messages: Array | Value | None
) -> Value:
    n = group.size
    nvlink = payload_bytes * (n - 1) / n / (rates.nvlink_bytes_per_s * group.link_share)
    moving_s = np.maximum(nvlink, _beyond_links_s(payload_bytes, group, rates))
    return _collective_s(operation, payload_bytes, moving_s, n - 1, group, rates, messages)


def _beyond_links_s(payload_bytes: Array | Value, group: RankGroup, rates: Rates) -> Value:
    """Time on the slower of the network and of PCIe between cards that NVLink joins in pairs, `[layout]`.

    Every rank's NIC is used: (n - r)/n of the payload enters a node, shared by r NICs. If the ranks do not fill their
    nodes, the node with the fewest is the slowest. A ring over several pairs is as fast as its slowest edge: all-reduce
    over two pairs of A100 reaches 25 GB/s on the bus (interconnect.csv ic178).
    """
    n, r = group.size, group.inside
    least = group.fewest_inside
    nic: Value = payload_bytes * (n - least) / n / (least * rates.nic_bytes_per_s)
    if (group.linked == r).all():
        return nic
    pcie = np.where(group.linked < r, payload_bytes * (n - 1) / n / rates.pcie_bytes_per_s, 0.0)
    return np.maximum(nic, pcie)


def _collective_s(
    operation: str,
    payload_bytes: Array | Value,
    moving_s: Value,
    steps: Array,
    group: RankGroup,
    rates: Rates,
    messages: Array | Value | None,
) -> Value:
    """Time of messages from their transfer time `moving_s` and the number of ranks that each passes."""
    number: Array | Value = 1.0 if messages is None else messages
    streamed = None if messages is None else payload_bytes / messages
    line = (moving_s + number * _reach_latency(group, steps, streamed, rates)) * _beyond(group, rates)
    return _with_measured(line, operation, payload_bytes, group, rates, number)


def all_reduce_s(
    payload_bytes: Array | Value, group: RankGroup, rates: Rates, messages: Array | Value | None = None
) -> Value:
    """Time of an all-reduce of `payload_bytes` held by every rank; arguments as in `gather_s`.

    In a domain with more than four ranks the switch reduces, whether or not the sum goes on to other domains:
    all-reduce over two nodes of H100 reaches 487 GB/s on the bus, while a ring inside each node stays below 370
    (interconnect.csv ic041, ic127).
    """
    n = group.size
    gain = np.where(group.linked > SWITCH_FROM, rates.nvls_gain_ratio, 1.0)
    nvlink = 2 * payload_bytes * (n - 1) / n / (rates.nvlink_bytes_per_s * group.link_share * gain)
    moving_s = np.maximum(nvlink, _beyond_links_s(2 * payload_bytes, group, rates))
    return _collective_s("all_reduce", payload_bytes, moving_s, 2 * (n - 1), group, rates, messages)


def all_to_all_s(
    send_bytes: Array | Value,
    group: RankGroup,
    rates: Rates,
    copies_per_node: Array | Value = 1.0,
    *,
    forwards: bool = False,
) -> Value:
    """Time of an all-to-all in which every rank sends `send_bytes` in total, spread evenly.

    Args:
        send_bytes: bytes that one rank sends.
        group: the ranks.
        rates: mid values or draws.
        copies_per_node: share of the bytes for other nodes that crosses the network; below 1 where a token bound for
            several experts on one node crosses it only once.
        forwards: whether what crosses the network arrives at one GPU of the node, which copies it to the others. Every
            byte then moves over the links of the node where it ends, not only a byte that began there.
    """
    n, r, linked, least = group.size, group.inside, group.linked, group.fewest_inside
    over_links = (linked - 1) / (linked if forwards else n)
    nvlink = send_bytes * over_links / (rates.nvlink_bytes_per_s * group.link_share)
    nic = send_bytes * (n - least) / n * copies_per_node / rates.nic_bytes_per_s
    pcie = np.where(linked < r, send_bytes * (n - linked) / n / rates.pcie_bytes_per_s, 0.0)
    slowest_s = np.maximum(np.maximum(nvlink, pcie), nic)
    line = (slowest_s + _latency(group, n - 1, rates) * 0.5) * _beyond(group, rates)
    return _with_measured(line, "all_to_all", send_bytes, group, rates)


def send_s(
    message_bytes: Array | Value,
    crosses: npt.NDArray[np.bool_] | bool,
    rates: Rates,
    bridged: npt.NDArray[np.bool_] | bool = False,
    link_share: float = 1.0,
) -> Value:
    """Time of one point-to-point message to the next pipeline stage.

    Args:
        message_bytes: size of the message.
        crosses: whether the message goes over the network.
        rates: mid values or draws.
        bridged: whether a message within a node goes over PCIe, between cards that NVLink joins in pairs.
        link_share: share of a GPU's links that lead to the next stage (`RankGroup.peer_share`).
    """
    link = rates.nvlink_bytes_per_s * link_share
    within = np.where(bridged, np.minimum(rates.pcie_bytes_per_s, link), link)
    rate = np.where(crosses, rates.nic_bytes_per_s, within)
    fixed = np.where(crosses, rates.nic_latency_s, rates.nvlink_latency_s)
    result: Value = message_bytes / rate + fixed
    return result
