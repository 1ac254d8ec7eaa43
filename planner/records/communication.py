"""What a point of several ranks did and found: the collective, where its ranks sit, what each rank measured."""

from __future__ import annotations

from dataclasses import replace

from planner.lazy import dataclass

OPS = ("all_reduce", "all_gather", "reduce_scatter", "all_to_all", "send_recv")
"""Collectives, as PyTorch names them; a ring of sends and receives counts as one."""
OPS_OF_NCCL_TESTS = {"alltoall": "all_to_all", "sendrecv": "send_recv"}
"""Names of nccl-tests to these; the others are the same."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Communication:
    """Who took part, and in which collective."""

    op: str | None = None
    """Of a collective: one of `OPS`, or what another tool names that the planner has no equation of."""
    group: str | None = None
    """Which ranks: `world`; `node` (all of a node) and `cross` (one of each node); `tp4` (4 neighbours) and `dp4` (4 as
    far apart as they can be). All groups of a name work at once."""
    backend: str | None = None
    """`nccl` or `gloo`."""
    world: int | None = None
    """Ranks of one group that took part; of a training point that another tool metered, GPUs whose power it is the
    mean of."""
    nodes: int | None = None
    """Hosts that the ranks of a group are on, each with as many."""
    bytes: float | None = None
    """Message of a collective as nccl-tests counts it: the whole buffer of one rank."""
    algorithm_bytes_per_s: float | None = None
    """Message over time."""
    bus_bytes_per_s: float | None = None
    """What each link carries: the algorithm's rate times 2(n-1)/n for an all-reduce, (n-1)/n for gathers, scatters and
    all-to-all, 1 for sends (NVIDIA/nccl-tests, doc/PERFORMANCE.md)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RankFigures:
    """What each rank found by itself, in the order of `rank_names`; keys begin with `rank_`.

    The figures of the point are those of the group: the time of a sample is that of its slowest rank, memory is the
    largest, energy and power are sums. In a merged record the members are the devices of the fleet.
    """

    names: tuple[str, ...] = ()
    """Of a run `node 0 rank 3`; of a merged record the members' names."""
    time_s: tuple[float, ...] = ()
    """Median time of one iteration."""
    power_w: tuple[float, ...] = ()
    """Mean power over the energy window."""
    energy_j: tuple[float, ...] = ()
    """Energy of one iteration."""
    temperature_c: tuple[float, ...] = ()
    """Core temperature at the end."""
    sm_clock_hz: tuple[float, ...] = ()
    """Median clock of the multiprocessors."""
    power_limit_w: tuple[float, ...] = ()
    """Enforced power limit."""
    memory_bytes: tuple[float, ...] = ()
    """Peak of live tensors."""
    slowed: tuple[str, ...] = ()
    """Names of the ranks whose clocks heat or an external brake had lowered."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OverlapFigures:
    """A product and a collective, each alone and both at once; keys begin with `overlap_`."""

    product_alone_s: float | None = None
    """The products by themselves."""
    collective_alone_s: float | None = None
    """The collectives by themselves."""
    product_beside_s: float | None = None
    """Until the products were done, beside the collectives."""
    both_s: float | None = None
    """Until both were done."""
    product_slowdown_ratio: float | None = None
    """Time of the products beside the collectives over their time alone."""
    collective_slowdown_ratio: float | None = None
    """The same of the collectives, while the products ran."""


def bus_factor(op: str, world: int) -> float:
    """Bytes on the bus per byte of the message (NVIDIA/nccl-tests, doc/PERFORMANCE.md)."""
    shared = (world - 1) / world
    return {"all_reduce": 2.0 * shared, "send_recv": 1.0}.get(op, shared)


def rates_of(op: str, world: int, size_bytes: float, time_s: float | None) -> tuple[float | None, float | None]:
    """Bytes per second by the algorithm and on the bus; None where there is no time."""
    if not time_s:
        return None, None
    rate = size_bytes / time_s
    return rate, rate * bus_factor(op, world)


def with_rates(communication: Communication, time_s: float | None) -> Communication:
    """A collective with the rates that its time makes; anything else as it is."""
    if communication.op is None or communication.world is None or communication.bytes is None:
        return communication
    algorithm, bus = rates_of(communication.op, communication.world, communication.bytes, time_s)
    return replace(communication, algorithm_bytes_per_s=algorithm, bus_bytes_per_s=bus)
