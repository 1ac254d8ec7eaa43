"""The ranks of a run: what they decide together, and the groups in which they communicate.

Every rank runs the same code in the same order. Decisions that depend on a rank's own clock or sensor (whether the time
is used up, whether it is hot) are made by rank 0 for all, through a separate gloo group, so that no collective is
disturbed.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from typing import Any, TypeVar

from planner.lazy import dataclass
from probes.device.faults import DeviceLost, PeerFailed, cleaned
from probes.ranks.failure_reports import FailureReports

T = TypeVar("T")

CONTROL_LIMIT_S = 180.0
"""Longest wait, in seconds, for the other ranks in a joint decision; longer than a collective, which fails first."""
COLLECTIVE_LIMIT_S = 60.0
"""Longest time, in seconds, that a collective may take before it counts as lost."""
HEAD = 64
"""Length of every joint all-reduce, whatever is compared, so that a failed rank's call matches those of the others."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """The position of a rank among ranks and nodes."""

    rank: int = 0
    """Rank among all ranks."""
    world: int = 1
    """Number of ranks."""
    local_rank: int = 0
    """Rank within its node, which is the number of its GPU."""
    local_world: int = 1
    """Ranks per node."""

    @property
    def node(self) -> int:
        """Number of its node."""
        return self.rank // self.local_world

    @property
    def nodes(self) -> int:
        """Number of nodes."""
        return self.world // self.local_world

    def name_of(self, rank: int) -> str:
        """Return the name of a rank."""
        return f"node {rank // self.local_world} rank {rank}"


@dataclass(frozen=True, slots=True, kw_only=True)
class RankGroup:
    """Ranks that communicate. Groups of one name are disjoint, cover every rank, and work at the same time."""

    name: str
    """`world`; `node` (the ranks of a node) and `cross` (one rank of each node); `tp4` (4 neighbours), `dp4` (4 ranks
    as far apart as possible)."""
    ranks: tuple[int, ...]
    """Ranks of this rank's group, in order."""
    nodes: int
    """Number of hosts that they are on."""
    handle: Any
    """The process group of `torch.distributed`."""

    @property
    def size(self) -> int:
        """Number of ranks."""
        return len(self.ranks)

    def index_of(self, rank: int) -> int:
        """Return the number of a rank within the group."""
        return self.ranks.index(rank)


class Team:
    """All ranks of a run, from the point of view of one of them. A single rank makes every decision itself."""

    def __init__(
        self,
        place: Place | None = None,
        backend: str | None = None,
        failure_reports: FailureReports | None = None,
        control: Any = None,
    ) -> None:
        """Make the team. With several ranks, the process group of the backend must exist already.

        Args:
            place: the place of this rank.
            backend: backend of the timed collectives: `nccl` or `gloo`.
            failure_reports: where ranks report why they can no longer reach each other.
            control: the group in which all ranks decide; None: one is made.
        """
        self.place = place or Place()
        self.backend = backend
        self.failure_reports = failure_reports or FailureReports()
        self._parted = False
        self._groups: dict[tuple[tuple[int, ...], ...], Any] = {}
        self._control = control
        if self.size > 1 and control is None:
            import torch.distributed as dist

            self._control = dist.new_group(backend="gloo", timeout=timedelta(seconds=CONTROL_LIMIT_S))

    @property
    def size(self) -> int:
        """Number of ranks."""
        return self.place.world

    @property
    def leads(self) -> bool:
        """Whether this is rank 0, which decides and writes."""
        return self.place.rank == 0

    @property
    def names(self) -> tuple[str, ...]:
        """Names of all ranks, in order."""
        return tuple(self.place.name_of(rank) for rank in range(self.size))

    def agree(self, decision: bool) -> bool:
        """Return the decision of rank 0."""
        return bool(self.of_first(float(decision)))

    def of_first(self, value: float) -> float:
        """Return the number that rank 0 has."""
        if self._alone:
            return value
        import torch
        import torch.distributed as dist

        tensor = torch.tensor([value], dtype=torch.float64)
        with _reaching():
            dist.broadcast(tensor, src=0, group=self._control)
        return float(tensor.item())

    def maxima(self, values: Sequence[float]) -> list[float]:
        """Return the element-wise maximum over all ranks; every rank passes equally many values.

        Raises:
            PeerFailed: another rank has failed in the meantime (`failures`).
        """
        if self._alone:
            return list(values)
        failed, _, *first = self._largest([0.0, 1.0, *values[: HEAD - 2]])
        if failed:
            raise PeerFailed("another rank failed")
        overflow = list(values[HEAD - 2 :])
        return first[: len(values)] + (self._largest(overflow)[: len(overflow)] if overflow else [])

    def meet(self) -> None:
        """Wait until every rank is here or has failed on its way.

        Raises:
            PeerFailed: a rank has failed.
        """
        self.maxima([])

    def failures(self, failure: T | None) -> list[T | None]:
        """Return what went wrong on each rank, in order of ranks; None where nothing did.

        Other ranks may still be in `maxima` or in a method that uses it, which then raises `PeerFailed`; they come here
        next.
        """
        if self._alone:
            return [failure]
        while True:
            failed, elsewhere, *_ = self._largest([float(failure is not None), 0.0])
            if not failed:
                return [None] * self.size
            if not elsewhere:
                return self._gathered(failure)

    def gather(self, value: T) -> list[T]:
        """Return the values of all ranks, in order of ranks, on every rank.

        Raises:
            PeerFailed: another rank has failed in the meantime.
        """
        if self._alone:
            return [value]
        self.meet()
        return self._gathered(value)

    def shared(self, value: T) -> T:
        """Return rank 0's value on every rank.

        Raises:
            PeerFailed: another rank has failed in the meantime.
        """
        if self._alone:
            return value
        import torch.distributed as dist

        self.meet()
        values = [value]
        with _reaching():
            dist.broadcast_object_list(values, src=0, group=self._control)
        return values[0]

    def line_up(self) -> None:
        """Wait until every rank is here."""
        if not self._alone:
            import torch.distributed as dist

            with _reaching():
                dist.barrier(group=self._control)

    def part(self, text: str) -> str:
        """Continue alone because ranks can no longer reach each other; return the reason that was reported first."""
        if self.size == 1:
            return text
        self._parted = True
        return self.failure_reports.report(f"{self.place.name_of(self.place.rank)}: {text}")

    @property
    def _alone(self) -> bool:
        return self.size == 1 or self._parted

    def _largest(self, values: Sequence[float]) -> list[float]:
        """Return the maximum over all ranks, padded to `HEAD` values, so that calls for different purposes match."""
        import torch
        import torch.distributed as dist

        filled = [*values, *[-math.inf] * (HEAD - len(values))]
        tensor = torch.tensor(filled, dtype=torch.float64)
        with _reaching():
            dist.all_reduce(tensor, op=dist.ReduceOp.MAX, group=self._control)
        return [float(value) for value in tensor.tolist()]

    def _gathered(self, value: T) -> list[T]:
        import torch.distributed as dist

        values: list[Any] = [None] * self.size
        with _reaching():
            dist.all_gather_object(values, value, group=self._control)
        return values

    def group(self, name: str, size: int, stride: int = 1) -> RankGroup:
        """Return this rank's group among the groups of `size` ranks, `stride` apart; all ranks must ask for it.

        Raises:
            ValueError: the sizes do not divide the number of ranks.
        """
        if self.size % (size * stride):
            raise ValueError(f"{self.size} ranks do not divide into groups of {size} that are {stride} apart")
        blocks = range(0, self.size, size * stride)
        parts = tuple(
            tuple(block + offset + stride * i for i in range(size)) for block in blocks for offset in range(stride)
        )
        if parts not in self._groups:
            self._groups[parts] = self._made(parts)
        ranks = next(part for part in parts if self.place.rank in part)
        nodes = len({rank // self.place.local_world for rank in ranks})
        return RankGroup(name=name, ranks=ranks, nodes=nodes, handle=self._groups[parts])

    def _made(self, parts: tuple[tuple[int, ...], ...]) -> Any:
        if self.size == 1:
            return None
        import torch.distributed as dist

        if parts == (tuple(range(self.size)),):
            return dist.group.WORLD
        # Each rank makes only its own group, and waits only for its members: with a thousand groups of 512 ranks, it
        # makes one group of each kind. All ranks use the same order; otherwise they would wait for each other.
        ranks = next(part for part in parts if self.place.rank in part)
        limit = timedelta(seconds=COLLECTIVE_LIMIT_S)
        return dist.new_group(list(ranks), timeout=limit, use_local_synchronization=True)

    def world(self) -> RankGroup:
        """Return the group of all ranks."""
        return self.group("world", self.size)


@contextmanager
def _reaching() -> Iterator[None]:
    """Guard communication between ranks, which fails only if a rank cannot be reached.

    Raises:
        DeviceLost: a rank cannot be reached.
    """
    try:
        yield
    except RuntimeError as error:  # gloo's own errors have no type
        raise DeviceLost(cleaned(error)) from error


def kinds_of_groups(place: Place) -> list[tuple[str, int, int]]:
    """Return name, size and stride of the groups whose collectives are measured, the whole world first.

    Neighbours (`tp`) are on as few nodes as possible, like tensor-parallel ranks; strided groups (`dp`) are on many.
    """
    world, local = place.world, place.local_world
    kinds = [("world", world, 1)]
    if place.nodes > 1 and local > 1:
        kinds += [("node", local, 1), ("cross", place.nodes, local)]
    size = 2
    while size < world:
        if world % size == 0:
            if size != local or place.nodes == 1:
                kinds.append((f"tp{size}", size, 1))
            if world // size != local or place.nodes == 1:
                kinds.append((f"dp{size}", size, world // size))
        size *= 2
    return kinds


ALONE = Team()
"""The team of a single process."""
