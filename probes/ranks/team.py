"""The ranks of a run: what they decide together, and the groups in which they communicate.

Every rank runs the same code in the same order. What depends on its own clock or sensor (is the time used up, is it
hot) is decided by rank 0 for all, through a group of its own over gloo, so that it disturbs no collective.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from typing import Any, TypeVar

from planner.lazy import dataclass
from probes.device.faults import DeviceLost, PeerFailed, cleaned
from probes.ranks.loss import Losses

T = TypeVar("T")

CONTROL_LIMIT_S = 180.0
"""Longest wait for the others where all decide together; above that of a collective, which fails first."""
COLLECTIVE_LIMIT_S = 60.0
"""Longest that a collective may take before it counts as lost."""
HEAD = 64
"""Numbers that ranks compare at once, whatever they compare: a rank that has failed meets those that have not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where a rank is."""

    rank: int = 0
    """Among all ranks."""
    world: int = 1
    """Number of ranks."""
    local_rank: int = 0
    """Among those of its node: the number of its GPU."""
    local_world: int = 1
    """Ranks of each node."""

    @property
    def node(self) -> int:
        """Number of its node."""
        return self.rank // self.local_world

    @property
    def nodes(self) -> int:
        """Number of nodes."""
        return self.world // self.local_world

    def name_of(self, rank: int) -> str:
        """How a rank is called."""
        return f"node {rank // self.local_world} rank {rank}"


@dataclass(frozen=True, slots=True, kw_only=True)
class RankGroup:
    """Ranks that communicate; groups of one name have no rank in common, hold every rank, and work at once."""

    name: str
    """`world`; `node` and `cross` (the ranks of a node; one of each node); `tp4` (4 neighbours), `dp4` (4 as far apart
    as they can be)."""
    ranks: tuple[int, ...]
    """Of this rank's group, in order."""
    nodes: int
    """Hosts that they are on."""
    handle: Any
    """The process group of `torch.distributed`."""

    @property
    def size(self) -> int:
        """Number of ranks."""
        return len(self.ranks)

    def index_of(self, rank: int) -> int:
        """Number of a rank within the group."""
        return self.ranks.index(rank)


class Team:
    """All ranks of a run, from the point of view of one of them. Without others every decision is its own."""

    def __init__(
        self,
        place: Place | None = None,
        backend: str | None = None,
        losses: Losses | None = None,
        control: Any = None,
    ) -> None:
        """Make the team; where it has several ranks, the process group of the backend is there already.

        Args:
            place: of this rank.
            backend: of the collectives that are timed: `nccl` or `gloo`.
            losses: where ranks tell why they can no longer reach each other.
            control: group in which all decide; None: one is made.
        """
        self.place = place or Place()
        self.backend = backend
        self.losses = losses or Losses()
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
        """Of all ranks, in order."""
        return tuple(self.place.name_of(rank) for rank in range(self.size))

    def agree(self, decision: bool) -> bool:
        """What rank 0 decided."""
        return bool(self.of_first(float(decision)))

    def of_first(self, value: float) -> float:
        """The number of rank 0."""
        if self._alone:
            return value
        import torch
        import torch.distributed as dist

        tensor = torch.tensor([value], dtype=torch.float64)
        with _reaching():
            dist.broadcast(tensor, src=0, group=self._control)
        return float(tensor.item())

    def maxima(self, values: Sequence[float]) -> list[float]:
        """The largest of all ranks, element by element; every rank has as many.

        Raises:
            PeerFailed: another rank has failed meanwhile (`failures`).
        """
        if self._alone:
            return list(values)
        failed, _, *first = self._largest([0.0, 1.0, *values[: HEAD - 2]])
        if failed:
            raise PeerFailed("another rank failed")
        rest = list(values[HEAD - 2 :])
        return first[: len(values)] + (self._largest(rest)[: len(rest)] if rest else [])

    def meet(self) -> None:
        """Wait until every rank is here, or has failed on its way.

        Raises:
            PeerFailed: one has.
        """
        self.maxima([])

    def failures(self, own: T | None) -> list[T | None]:
        """What went wrong on each rank, in order of ranks; None where nothing did.

        The others may be on their way through `maxima` or what rests on it, which tells them; they come here next.
        """
        if self._alone:
            return [own]
        while True:
            failed, elsewhere, *_ = self._largest([float(own is not None), 0.0])
            if not failed:
                return [None] * self.size
            if not elsewhere:
                return self._gathered(own)

    def gather(self, value: T) -> list[T]:
        """What each rank has, in order of ranks, on every rank.

        Raises:
            PeerFailed: another rank has failed meanwhile.
        """
        if self._alone:
            return [value]
        self.meet()
        return self._gathered(value)

    def shared(self, value: T) -> T:
        """What rank 0 has, on every rank.

        Raises:
            PeerFailed: another rank has failed meanwhile.
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
        """Go on alone, since ranks cannot reach each other any more; returns what was told of that first."""
        if self.size == 1:
            return text
        self._parted = True
        return self.losses.tell(f"{self.place.name_of(self.place.rank)}: {text}")

    @property
    def _alone(self) -> bool:
        return self.size == 1 or self._parted

    def _largest(self, values: Sequence[float]) -> list[float]:
        """The largest of all ranks; as many as `HEAD` at least, so that those who compare other things meet."""
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
        """The group of this rank among those of `size` ranks, `stride` apart; all ranks must ask for it.

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
        own = next(part for part in parts if self.place.rank in part)
        nodes = len({rank // self.place.local_world for rank in own})
        return RankGroup(name=name, ranks=own, nodes=nodes, handle=self._groups[parts])

    def _made(self, parts: tuple[tuple[int, ...], ...]) -> Any:
        if self.size == 1:
            return None
        import torch.distributed as dist

        if parts == (tuple(range(self.size)),):
            return dist.group.WORLD
        # Each rank makes its own group alone, and waits for its members alone: of a thousand groups of 512 ranks each
        # makes one of each kind. All make theirs in the same order, without which they would wait for each other.
        own = next(part for part in parts if self.place.rank in part)
        limit = timedelta(seconds=COLLECTIVE_LIMIT_S)
        return dist.new_group(list(own), timeout=limit, use_local_synchronization=True)

    def world(self) -> RankGroup:
        """All ranks."""
        return self.group("world", self.size)


@contextmanager
def _reaching() -> Iterator[None]:
    """Around what ranks tell each other: it fails only where one cannot be reached.

    Raises:
        DeviceLost: one cannot.
    """
    try:
        yield
    except RuntimeError as error:  # gloo's own errors have no type
        raise DeviceLost(cleaned(error)) from error


def kinds_of_groups(place: Place) -> list[tuple[str, int, int]]:
    """Name, size and stride of the groups whose collectives are measured, the whole world first.

    Neighbours (`tp`) are on as few nodes as they can be, as tensor parallel ranks are; strided groups (`dp`) on many.
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
"""One process."""
