"""Convert raw measurements of collectives inside one node to surfaces.

If the table (`tools/kernel_rows.py`, nccl_one_node.csv.gz) is complete, a surface needs no fit, because message and
group sizes are powers of two. A node of the surface is the median over releases of NCCL and over data types, which
differ only in their bytes. Two kinds of system are left out: those not measured with 8 GPUs (GB200, GB300: within 4%
of B200 and B300 on 2 and 4 GPUs), and those without NVLink (the L40S host is faulty: 5 GB/s over 4 GPUs, 1 GB/s over
8).
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from planner.evidence import Evidence, EvidenceKind
from planner.kernels.collectives import COLLECTIVE_AXES, bus_bytes
from planner.kernels.fit import rising
from planner.kernels.surface import Floats, Surface
from tools.kernel_rows import GPUS, read_raw

SYSTEMS = ("a100_sxm", "h100_sxm", "h200_sxm", "b200_sxm", "b300_sxm")
"""Systems with NVLink that were measured with 2, 4 and 8 GPUs."""
OPERATIONS = {"all_reduce": "all_reduce", "all_gather": "all_gather", "reduce_scatter": "reduce_scatter",
              "alltoall": "all_to_all"}  # fmt: skip
"""Names of the collectives in the raw file, with their names in the catalogue."""
COLLECTIVE_SIZES = COLLECTIVE_AXES[1].nodes[:20]
"""Measured message sizes, up to 512 MiB. Beyond, the time per byte is that of the last octave."""
LEAST_GROWTH = 2e-3
"""Minimum increase of the log time from node to node, which exceeds the rounding of a rate to four digits."""
KNOWN_SD = 0.01
"""Minimum spread that is stated: about the difference between repeated runs of nccl-tests."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Collectives:
    """One collective of one system."""

    system: str
    """Name in the raw file."""
    gpu: str
    operation: str
    seconds: Floats
    """Median time by group size and by message size (`COLLECTIVE_SIZES`), `[group, size]`."""
    stack_spread: float
    """Standard deviation of the logarithm between releases and types: the median over sizes from 1 MiB."""
    points: int
    """Number of rows in the raw file."""


def read_collectives(folder: Path) -> list[Collectives]:
    """Read every collective of every system that has a surface."""
    times: dict[tuple[str, str, int, int], list[float]] = defaultdict(list)
    for row in read_raw(folder, "nccl_one_node.csv.gz"):
        if row["system"] in SYSTEMS:
            key = (row["system"], OPERATIONS[row["op_name"]], int(row["num_gpus"]), int(row["bytes"]))
            times[key].append(float(row["median_us"]) * 1e-6)
    return [_collectives(times, system, operation) for system in SYSTEMS for operation in OPERATIONS.values()]


def _collectives(times: dict[tuple[str, str, int, int], list[float]], system: str, operation: str) -> Collectives:
    groups, sizes = COLLECTIVE_AXES[0].nodes, COLLECTIVE_SIZES
    log_s = [[np.log(times[system, operation, int(group), int(size)]) for size in sizes] for group in groups]
    large = sizes >= 2**20
    spreads = [np.std(logs) for row in log_s for logs, counts in zip(row, large, strict=True) if counts]
    return Collectives(
        system=system, gpu=GPUS[system], operation=operation,
        seconds=np.exp([[np.median(logs) for logs in row] for row in log_s]),
        stack_spread=max(float(np.median(spreads)), KNOWN_SD), points=sum(len(logs) for row in log_s for logs in row),
    )  # fmt: skip


def collective_surface(collectives: Collectives, spread: float = 0.0) -> Surface:
    """Return the surface of one collective, whose times increase with the message size.

    Args:
        collectives: measured times.
        spread: spread of held-out sizes.
    """
    groups, sizes = np.meshgrid(*(axis.nodes for axis in COLLECTIVE_AXES), indexing="ij")
    log_s = np.log([_extended(row) for row in collectives.seconds])
    return Surface(
        id=f"{collectives.operation}:{collectives.gpu}", axes=COLLECTIVE_AXES,
        log_rate=np.log(bus_bytes(collectives.operation, sizes, groups)) - log_s,
        floor_s=float(np.min(collectives.seconds)), spread=spread, stack_spread=collectives.stack_spread,
        evidence=Evidence(id="fit", kind=EvidenceKind.PUBLISHED, what="", source=""),
    )  # fmt: skip


def _extended(seconds: Floats) -> Floats:
    """Return increasing times at all sizes of the surface, from the measured times, `[size]`."""
    least = LEAST_GROWTH * np.arange(len(seconds))
    rises = np.exp(np.maximum.accumulate(rising(np.log(seconds)) - least) + least)
    beyond = COLLECTIVE_AXES[1].nodes[len(seconds) :] / COLLECTIVE_SIZES[-1] - 1.0
    return np.concatenate([rises, rises[-1] + 2.0 * (rises[-1] - rises[-2]) * beyond])


def held_out_sizes(collectives: Collectives) -> Floats:
    """Return log ratios of interpolated to measured times, every second size held out, in two passes, `[point]`."""
    sizes = np.log(COLLECTIVE_SIZES)
    misses = []
    for log_s in np.log(collectives.seconds):
        for first in (0, 1):
            kept = np.arange(len(sizes)) % 2 == first
            out = ~kept & (sizes > sizes[kept][0]) & (sizes < sizes[kept][-1])
            misses.append(np.interp(sizes[out], sizes[kept], log_s[kept]) - log_s[out])
    return np.concatenate(misses)
