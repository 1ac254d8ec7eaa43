"""The user's own runs inside a node as surfaces, like the shipped ones: time by operation, group and size.

Collectives that were run take their measured times. Between and beyond the measured sizes, and for other groups, the
shipped surface gives the shape of the curve. Operations that were not run keep their shipped surface, scaled to the
rate of the measured operations.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from planner.evidence import Evidence
from planner.kernels.collectives import bus_bytes, collective_s, large_bytes_per_s
from planner.kernels.fit import rising
from planner.kernels.surface import Floats, Surface
from planner.measured.network.runs import CollectiveRun

OPERATIONS = {
    "all_reduce": "all_reduce", "all_gather": "all_gather", "reduce_scatter": "reduce_scatter",
    "alltoall": "all_to_all",
}  # fmt: skip
"""Map from the name of a collective in nccl-tests to the name of its surface."""


def own_surfaces(
    runs: Sequence[CollectiveRun], shipped: Mapping[str, Surface], bytes_per_s: float, evidence: Evidence
) -> dict[str, Surface]:
    """Surfaces of a link by operation, from runs inside a node; empty if there are no shipped ones to start from.

    Args:
        runs: runs inside one NVLink domain.
        shipped: known surfaces of the link, by operation.
        bytes_per_s: bus bandwidth of large gathers, estimated from all the runs.
        evidence: evidence of the runs.
    """
    slowdown = large_bytes_per_s(shipped["all_gather"]) / bytes_per_s if shipped else 1.0
    surfaces = {}
    for operation, surface in shipped.items():
        measured = [run for run in runs if OPERATIONS.get(run.collective) == operation]
        log_rate = _log_rate(measured, operation, surface) if measured else surface.log_rate - np.log(slowdown)
        fastest_s = min((float(run.times_s.min()) for run in measured), default=surface.floor_s)
        surfaces[operation] = replace(
            surface, id=f"{evidence.id}:{operation}", log_rate=log_rate, floor_s=min(surface.floor_s, fastest_s),
            evidence=evidence,
        )  # fmt: skip
    return surfaces


def _log_rate(runs: Sequence[CollectiveRun], operation: str, surface: Surface) -> Floats:
    """Logarithm of the rate at the nodes of the surface, `[group, size]`; no time decreases as messages grow."""
    groups, sizes = (axis.nodes for axis in surface.axes)
    rows = []
    for group, shipped_log_rate in zip(groups, surface.log_rate, strict=True):
        run = _nearest(runs, float(group))
        log_work = np.log(bus_bytes(operation, sizes, group))
        rows.append(log_work - rising(log_work - shipped_log_rate + _log_ratio(run, operation, surface, sizes)))
    return np.array(rows)


def _nearest(runs: Sequence[CollectiveRun], gpus: float) -> CollectiveRun:
    """Run whose group is nearest in size."""
    return min(runs, key=lambda run: abs(math.log(run.ranks / gpus)))


def _log_ratio(run: CollectiveRun, operation: str, surface: Surface, sizes: Floats) -> Floats:
    """Logarithm of measured over shipped times, `[size]`; constant beyond the smallest and largest size of the run."""
    measured_sizes = np.clip(sizes, run.sizes_bytes[0], run.sizes_bytes[-1])
    log_s = np.interp(np.log(measured_sizes), np.log(run.sizes_bytes), np.log(run.times_s))
    return np.asarray(log_s - np.log(collective_s(surface, operation, measured_sizes, float(run.ranks))))
