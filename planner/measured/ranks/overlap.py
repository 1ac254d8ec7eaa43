"""Overlap of work and communication: how long both take if each slows the other down."""

from __future__ import annotations

from collections.abc import Iterable
from statistics import median

from planner.lazy import dataclass
from planner.records.measurement import Measurement


@dataclass(frozen=True, slots=True, kw_only=True)
class Slowdowns:
    """Time of work and of communication when they overlap, each as a multiple of its time alone."""

    work_ratio: float = 1.0
    communication_ratio: float = 1.0
    probe_ids: tuple[str, ...] = ()
    """Points that the ratios rest on. If empty, nothing was measured and each is assumed to run as if alone."""

    def overlapped_s(self, work_s: float, communication_s: float) -> float:
        """Time until work and communication that start together are both done, given the time of each alone.

        While both run, each advances at its slowed pace; the remainder of the longer one then runs alone.
        """
        slow_work_s, slow_communication_s = work_s * self.work_ratio, communication_s * self.communication_ratio
        if slow_work_s <= slow_communication_s:
            return slow_work_s + communication_s - slow_work_s / self.communication_ratio
        return slow_communication_s + work_s - slow_communication_s / self.work_ratio


def slowdowns(points: Iterable[Measurement], op: str | None = None) -> Slowdowns:
    """Median slowdowns from the points of kind `overlap`: of one operation if it was measured, otherwise of all.

    Args:
        points: points of one record.
        op: one of `planner.records.communication.OPS`.
    """
    usable = [
        point
        for point in points
        if point.kind == "overlap" and point.status == "ok" and point.overlap.product_slowdown_ratio is not None
    ]
    of_op = [point for point in usable if point.communication.op == op] or usable
    if not of_op:
        return Slowdowns()
    work = [point.overlap.product_slowdown_ratio or 1.0 for point in of_op]
    communication = [point.overlap.collective_slowdown_ratio or 1.0 for point in of_op]
    return Slowdowns(
        work_ratio=max(median(work), 1.0),
        communication_ratio=max(median(communication), 1.0),
        probe_ids=tuple(point.probe_id for point in of_op),
    )
