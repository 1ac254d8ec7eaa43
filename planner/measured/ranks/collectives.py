"""Time of a collective on ranks that were measured, by operation, group and size, from the lines of one record."""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from planner.lazy import dataclass
from planner.measured.network.messages import StepMessage
from planner.records.communication import bus_factor
from planner.records.measurement import Measurement

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredCollective:
    """Times of one operation in one kind of group."""

    op: str
    """One of `planner.records.communication.OPS`."""
    world: int
    """Number of ranks in a group."""
    neighbours: bool
    """Whether its ranks are next to each other, rather than far apart."""
    sizes_bytes: Floats
    """Message sizes, ascending, `[size]`."""
    times_s: Floats
    """Times of these sizes, `[size]`."""
    probe_ids: tuple[str, ...]
    """Ids of its points."""

    def seconds(self, size_bytes: float) -> float:
        """Time of a message, interpolated linearly in the logarithms between the measured sizes.

        A smaller message takes the time of the smallest; the time of a larger one grows in proportion to its size.
        """
        if size_bytes >= self.sizes_bytes[-1]:
            return float(self.times_s[-1] * size_bytes / self.sizes_bytes[-1])
        log_s = np.interp(math.log(max(size_bytes, 1.0)), np.log(self.sizes_bytes), np.log(self.times_s))
        return float(np.exp(log_s))


@dataclass(frozen=True, slots=True, kw_only=True)
class Charge:
    """Time of a message, and the points that it rests on."""

    seconds: float
    probe_ids: tuple[str, ...]


class MeasuredCollectives:
    """The collectives of one record."""

    def __init__(self, points: Iterable[Measurement]) -> None:
        """Sort the points of kind `collective`; other points are skipped."""
        by_kind: dict[tuple[str, int, bool], dict[float, Measurement]] = {}
        for point in points:
            comm = point.communication
            if point.kind != "collective" or not point.usable_time or not comm.op or not comm.world or not comm.bytes:
                continue
            kind = (comm.op, comm.world, not (comm.group or "").startswith(("dp", "cross")))
            by_kind.setdefault(kind, {})[comm.bytes] = point
        self.measured = tuple(_measured(kind, by_size) for kind, by_size in by_kind.items())

    def charge(self, message: StepMessage) -> Charge | None:
        """Time of one message, from the most similar measured group; None if the operation was not measured.

        A different number of ranks is converted as for a ring. The bytes on the bus scale with the factor of
        nccl-tests. The latency, which is the time of the smallest message, scales with the number of steps. Sends to
        the next rank all run concurrently, so their time does not depend on the number of ranks.
        """
        if message.world < 2:
            return Charge(seconds=0.0, probe_ids=())
        same_op = [known for known in self.measured if known.op == message.op]
        if not same_op:
            return None
        neighbours = message.stride == 1

        def distance(known: MeasuredCollective) -> tuple[float, bool]:
            return abs(math.log(known.world / message.world)), known.neighbours != neighbours

        nearest = min(same_op, key=distance)
        seconds = nearest.seconds(message.bytes)
        if nearest.world != message.world and message.op != "send_recv":
            least_s = float(nearest.times_s[0])
            steps = (message.world - 1) / (nearest.world - 1)
            bytes_ratio = bus_factor(message.op, message.world) / bus_factor(message.op, nearest.world)
            seconds = least_s * steps + max(seconds - least_s, 0.0) * bytes_ratio
        return Charge(seconds=seconds, probe_ids=nearest.probe_ids)


def _measured(kind: tuple[str, int, bool], by_size: dict[float, Measurement]) -> MeasuredCollective:
    op, world, neighbours = kind
    sizes = sorted(by_size)
    return MeasuredCollective(
        op=op,
        world=world,
        neighbours=neighbours,
        sizes_bytes=np.array(sizes),
        times_s=np.array([by_size[size].time.median_s for size in sizes], dtype=np.float64),
        probe_ids=tuple(by_size[size].probe_id for size in sizes),
    )
