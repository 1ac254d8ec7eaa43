"""Collectives of a record, measured by mpplan or imported, as runs to which the network terms are fitted."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from planner.errors import InputFileError
from planner.measured.network.rows import USED
from planner.measured.network.runs import CollectiveRun
from planner.records.communication import OPS_OF_NCCL_TESTS
from planner.records.measurement import Measurement
from planner.records.summary import measures_network

NCCL_TESTS_OF_OPS = {op: name for name, op in OPS_OF_NCCL_TESTS.items()}

_Kind = tuple[str, str, int, int]
"""Collective as nccl-tests names it, group, ranks and nodes. Points that agree in all four form one run."""


def collective_runs(points: Iterable[Measurement], name: str) -> tuple[CollectiveRun, ...]:
    """Group the points of kind `collective` into runs of several sizes.

    Collectives of gloo or of CPUs are left out, because they say nothing about the links between GPUs.

    Args:
        points: points of one record.
        name: name of its file, for errors.

    Raises:
        InputFileError: there are no such runs.
    """
    usable = [point for point in points if measures_network(point)]
    busy = max((_per_node(point) for point in usable), default=0)
    by_run: dict[_Kind, dict[float, Measurement]] = {}
    for point in usable:
        comm = point.communication
        op, world, nodes, size_bytes = str(comm.op), comm.world or 0, comm.nodes or 1, comm.bytes or 0.0
        collective = NCCL_TESTS_OF_OPS.get(op, op)
        if collective in USED and world % nodes == 0:
            by_run.setdefault((collective, comm.group or "world", world, nodes), {})[size_bytes] = point
    runs = tuple(_run(kind, by_size, busy) for kind, by_size in by_run.items() if len(by_size) > 1)
    if not runs:
        raise InputFileError(
            f"{name}: expected collectives of several sizes between GPUs, found none",
            hint="measure them with `mpplan probe --ranks`, or import what nccl-tests prints with `mpplan records "
            "import`",
        )
    return runs


def _per_node(point: Measurement) -> int:
    """Number of ranks of the group on each host."""
    comm = point.communication
    return (comm.world or 0) // (comm.nodes or 1)


def _run(kind: _Kind, by_size: dict[float, Measurement], busy: int) -> CollectiveRun:
    collective, group, ranks, nodes = kind
    points = [by_size[size] for size in sorted(by_size)]
    imported = points[0].imported.tool is not None
    return CollectiveRun(
        collective=collective,
        group=group,
        ranks=ranks,
        nodes=nodes,
        busy_per_node=ranks // nodes if imported else busy,  # in a record of mpplan, groups ran concurrently
        device_name=points[0].device.name,
        sizes_bytes=np.array(sorted(by_size)),
        times_s=np.array([point.time.median_s for point in points], dtype=np.float64),
        spread_ratio=_spread(points) if imported else 0.0,
        sampled_sds=None if imported else np.array([point.time_relative_sd or 0.0 for point in points]),
    )


def _spread(points: Sequence[Measurement]) -> float:
    """Relative standard deviation of all times that follows from the doubts about an imported file."""
    return max((point.imported.sd_ratio or 0.0 for point in points), default=0.0)
