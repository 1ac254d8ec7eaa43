"""Time of collectives from message size, ranks and where the ranks sit.

`t = latency + bytes on the bus / bus bandwidth` (nccl-tests' factors: 2(n-1)/n for all-reduce, (n-1)/n for all-gather,
reduce-scatter and all-to-all), at the slower of the two levels: inside the NVLink domain and between domains. The
straight line is a fit of the measured tables in `catalog/interconnect.csv`; decision 0003 says what it leaves out.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from planner.rates.terms import Rates, Value

Array = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class RankGroup:
    """The ranks of one parallel axis, per layout: `[layout]`."""

    size: Array
    """Ranks that take part."""
    inside: Array
    """Of these, ranks in one NVLink domain."""

    @property
    def crosses(self) -> npt.NDArray[np.bool_]:
        """Whether the axis leaves the NVLink domain."""
        return self.size > self.inside


def place(size: npt.NDArray[np.int64], stride: npt.NDArray[np.int64] | int, domain: int) -> RankGroup:
    """Ranks `stride` apart in groups of `size`, on NVLink domains of `domain` GPUs."""
    inside = np.clip(domain // np.asarray(stride), 1, size)
    return RankGroup(size=size.astype(np.float64), inside=inside.astype(np.float64))


def _latency(group: RankGroup, steps: Array | Value, rates: Rates) -> Value:
    """Fixed time of one collective: its start and its ranks."""
    fixed = np.where(group.crosses, rates.nic_latency_s, rates.nvlink_latency_s)
    hops = np.minimum(steps, 64.0)  # trees take over from rings on many ranks: latency stops growing linearly
    result: Value = np.where(group.size > 1, fixed + hops * rates.hop_latency_s, 0.0)
    return result


def _ring_latency(group: RankGroup, steps: Array | Value, rates: Rates) -> Value:
    """The same with the further domains that a ring passes one after another."""
    further: Value = group.size / group.inside - 1.0
    return _latency(group, steps, rates) + further * rates.node_hop_s


def gather_s(payload_bytes: Array | Value, group: RankGroup, rates: Rates, messages: Array | Value = 1.0) -> Value:
    """All-gather or reduce-scatter of `payload_bytes` (the whole, not one rank's part), in so many equal messages."""
    n, r = group.size, group.inside
    nvlink = payload_bytes * (n - 1) / n / rates.nvlink_bytes_per_s
    # Every rank's NIC works: what enters a domain is (n - r)/n of the payload, shared by r NICs.
    nic = payload_bytes * (n - r) / n / (r * rates.nic_bytes_per_s)
    result: Value = np.maximum(nvlink, nic) + messages * _ring_latency(group, n - 1, rates)
    return result


def all_reduce_s(payload_bytes: Array | Value, group: RankGroup, rates: Rates, messages: Array | Value = 1.0) -> Value:
    """All-reduce of `payload_bytes` held by every rank, in so many equal messages."""
    n, r = group.size, group.inside
    gain = np.where((r > 4) & (n == r), rates.nvls_gain_ratio, 1.0)
    nvlink = 2 * payload_bytes * (n - 1) / n / (rates.nvlink_bytes_per_s * gain)
    nic = 2 * payload_bytes * (n - r) / n / (r * rates.nic_bytes_per_s)
    result: Value = np.maximum(nvlink, nic) + messages * _ring_latency(group, 2 * (n - 1), rates)
    return result


def all_to_all_s(
    send_bytes: Array | Value, group: RankGroup, rates: Rates, copies_per_node: Array | Value = 1.0
) -> Value:
    """All-to-all in which every rank sends `send_bytes` in total, spread evenly.

    `copies_per_node` below 1: a token bound for several experts of one node crosses the network once.
    """
    n, r = group.size, group.inside
    nvlink = send_bytes * (r - 1) / n / rates.nvlink_bytes_per_s
    nic = send_bytes * (n - r) / n * copies_per_node / rates.nic_bytes_per_s
    result: Value = np.maximum(nvlink, nic) + _latency(group, n - 1, rates) * 0.5
    return result


def send_s(message_bytes: Array | Value, crosses: npt.NDArray[np.bool_], rates: Rates) -> Value:
    """One point-to-point message to the next pipeline stage."""
    rate = np.where(crosses, rates.nic_bytes_per_s, rates.nvlink_bytes_per_s)
    fixed = np.where(crosses, rates.nic_latency_s, rates.nvlink_latency_s)
    result: Value = message_bytes / rate + fixed
    return result
