"""Content of a point of several ranks: the collective, the placement of its ranks, and the figures of each rank."""

from __future__ import annotations

from dataclasses import replace

from planner.lazy import dataclass

OPS = ("all_reduce", "all_gather", "reduce_scatter", "all_to_all", "send_recv")
"""Collectives, as PyTorch names them; a ring of sends and receives counts as one."""
OPS_OF_NCCL_TESTS = {"alltoall": "all_to_all", "sendrecv": "send_recv"}
"""Map from names in nccl-tests to names in `OPS`; names that are not listed are equal."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Communication:
    """A collective and the ranks that took part in it."""

    op: str | None = None
    """Operation of a collective: one of `OPS`, or another tool's name for one without an equation in the planner."""
    group: str | None = None
    """Ranks of a group: `world`; `node` (all of a node) or `cross` (one of each node); `tp4` (4 neighbours) or `dp4`
    (4 ranks as far apart as possible). All groups of one name work concurrently."""
    backend: str | None = None
    """`nccl` or `gloo`."""
    world: int | None = None
    """Number of ranks in one group. For a training point that another tool metered, the number of GPUs over which its
    power is averaged."""
    nodes: int | None = None
    """Number of hosts that the ranks of a group are on, with equally many on each."""
    bytes: float | None = None
    """Message size of a collective as nccl-tests counts it: the whole buffer of one rank."""
    algorithm_bytes_per_s: float | None = None
    """Algorithm bandwidth: message size over time."""
    bus_bytes_per_s: float | None = None
    """Bus bandwidth, the traffic on each link: the algorithm bandwidth times 2(n-1)/n for an all-reduce, (n-1)/n for
    gathers, scatters and all-to-all, 1 for sends (NVIDIA/nccl-tests, doc/PERFORMANCE.md)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RankFigures:
    """Figures of each rank, in the order of `rank_names`; keys begin with `rank_`.

    The figures of the point itself are for the group: the time of a sample is that of its slowest rank, memory is the
    largest, and energy and power are sums. In a merged record, the ranks are the devices of the fleet.
    """

    names: tuple[str, ...] = ()
    """Names of the ranks: like `node 0 rank 3` in a run, those of the members in a merged record."""
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
    """Times of products and collectives, each alone and both concurrently; keys begin with `overlap_`."""

    product_alone_s: float | None = None
    """Time of the products alone."""
    collective_alone_s: float | None = None
    """Time of the collectives alone."""
    product_beside_s: float | None = None
    """Time until the products were done, while the collectives ran."""
    both_s: float | None = None
    """Time until both were done."""
    product_slowdown_ratio: float | None = None
    """Time of the products while the collectives ran, over their time alone."""
    collective_slowdown_ratio: float | None = None
    """Time of the collectives while the products ran, over their time alone."""


def bus_factor(op: str, world: int) -> float:
    """Bytes on the bus per byte of the message (NVIDIA/nccl-tests, doc/PERFORMANCE.md)."""
    shared = (world - 1) / world
    return {"all_reduce": 2.0 * shared, "send_recv": 1.0}.get(op, shared)


def rates_of(op: str, world: int, size_bytes: float, time_s: float | None) -> tuple[float | None, float | None]:
    """Algorithm and bus bandwidth in bytes per second; None if there is no time."""
    if not time_s:
        return None, None
    rate = size_bytes / time_s
    return rate, rate * bus_factor(op, world)


def with_rates(communication: Communication, time_s: float | None) -> Communication:
    """Add the rates that follow from its time to a collective; leave anything else unchanged."""
    if communication.op is None or communication.world is None or communication.bytes is None:
        return communication
    algorithm, bus = rates_of(communication.op, communication.world, communication.bytes, time_s)
    return replace(communication, algorithm_bytes_per_s=algorithm, bus_bytes_per_s=bus)
