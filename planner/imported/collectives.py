"""The collectives of an imported record as runs of nccl-tests, from which the network's terms are fitted."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from planner.errors import InputFileError
from planner.measured.network.rows import USED
from planner.measured.network.runs import CollectiveRun
from planner.records.communication import OPS_OF_NCCL_TESTS
from planner.records.measurement import Measurement

NCCL_TESTS_OF_OPS = {op: name for name, op in OPS_OF_NCCL_TESTS.items()}


def collective_runs(points: Iterable[Measurement], name: str) -> tuple[CollectiveRun, ...]:
    """The runs that the points of kind `collective` were made from.

    Args:
        points: of one record.
        name: of its file, for errors.

    Raises:
        InputFileError: there are none, or of a size alone.
    """
    by_run: dict[tuple[str, int, int], dict[float, Measurement]] = {}
    for point in points:
        at = point.communication
        role, ranks, nodes, size_bytes = NCCL_TESTS_OF_OPS.get(at.op or "", at.op), at.world, at.nodes, at.bytes
        usable = point.kind == "collective" and point.usable_time and role in USED and ranks and nodes and size_bytes
        if usable and ranks and nodes and size_bytes and role and ranks > 1 and ranks % nodes == 0:
            by_run.setdefault((role, ranks, nodes), {})[size_bytes] = point
    runs = tuple(_run(kind, by_size) for kind, by_size in by_run.items() if len(by_size) > 1)
    if not runs:
        raise InputFileError(
            f"{name}: expected collectives of several sizes, found none",
            hint="import the output of nccl-tests with `mpplan records import`, or pass that itself",
        )
    return runs


def _run(kind: tuple[str, int, int], by_size: dict[float, Measurement]) -> CollectiveRun:
    role, ranks, nodes = kind
    sizes = sorted(by_size)
    return CollectiveRun(
        collective=role,
        ranks=ranks,
        nodes=nodes,
        device_name=by_size[sizes[0]].device.name,
        sizes_bytes=np.array(sizes),
        times_s=np.array([by_size[size].time.median_s for size in sizes], dtype=np.float64),
        spread_ratio=max((point.imported.sd_ratio or 0.0 for point in by_size.values()), default=0.0),
    )
