"""Collectives of one record as straight lines: `t = latency + bytes / rate`, by operation and group of ranks.

This is the alpha-beta model of a network (Hockney 1994, doi 10.1016/S0167-8191(06)80021-9), fitted by relative errors,
so that a message of 1 KiB counts as much as one of 1 GiB. No straight line holds over many decades of size, because
NCCL changes its protocol and algorithm with size. The residual shows by how much, and plans use the times themselves
where they can (`surfaces.py`). Outliers are down-weighted (Huber 1964, doi 10.1214/aoms/1177703732).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt

from planner.lazy import dataclass
from planner.records.communication import bus_factor
from planner.records.measurement import Measurement

Floats = npt.NDArray[np.float64]

HUBER = 1.345
"""Number of standard deviations beyond which an error is down-weighted: 95 % efficient for normal errors."""
MAD_TO_SD = 1.4826
"""Standard deviation of a normal distribution over its median absolute deviation."""
LEAST_SD = 1e-3
"""Least spread of the errors for finding outliers, since no time is known better."""
ROUNDS = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class CollectiveLine:
    """One collective over one group of ranks, as a straight line in the bytes of its message."""

    op: str
    """Name of the operation in PyTorch."""
    group: str | None
    """Ranks that form the group (`Communication.group`); None if the measuring tool does not say."""
    backend: str | None
    """`nccl` or `gloo`; None if unknown."""
    world: int
    """Number of ranks in one group."""
    nodes: int
    """Number of hosts that they are on."""
    sizes: int
    """Number of message sizes."""
    smallest_bytes: float
    largest_bytes: float
    latency_s: float
    """Time of an empty message (alpha); 0 if the fit leaves none."""
    latency_sd_s: float | None
    """Standard error; None if there are only two sizes and no spread of the samples is known."""
    bytes_per_s: float | None
    """Message size over the part of the time that grows with it (1 / beta); None if the times do not grow."""
    bytes_per_s_sd: float | None
    """Standard error."""
    bus_bytes_per_s: float | None
    """Bus bandwidth at this rate: the traffic on each link (NVIDIA/nccl-tests, doc/PERFORMANCE.md)."""
    residual_ratio: float
    """Root mean square of the relative errors of all sizes, including outliers."""


def collective_lines(points: Iterable[Measurement]) -> tuple[CollectiveLine, ...]:
    """Fit a line to each operation and group of a record that was measured with two sizes or more.

    Args:
        points: points of one record. The last point of each size counts; points without a time are left out.
    """
    by_kind: dict[tuple[str, str | None, str | None, int, int], dict[float, Measurement]] = {}
    for point in points:
        comm = point.communication
        if point.kind == "collective" and point.usable_time and comm.op and comm.world and comm.nodes and comm.bytes:
            by_kind.setdefault((comm.op, comm.group, comm.backend, comm.world, comm.nodes), {})[comm.bytes] = point
    return tuple(
        _line(op, group, backend, world, nodes, [by_size[size] for size in sorted(by_size)])
        for (op, group, backend, world, nodes), by_size in by_kind.items()
        if len(by_size) > 1
    )


def _line(
    op: str, group: str | None, backend: str | None, world: int, nodes: int, points: Sequence[Measurement]
) -> CollectiveLine:
    sizes = np.array([point.communication.bytes for point in points], dtype=np.float64)
    times_s = np.array([point.time.median_s for point in points], dtype=np.float64)
    sampled = np.array([point.time_relative_sd or 0.0 for point in points])
    (latency_s, s_per_byte), sds = _fit(sizes, times_s, float(np.sqrt(np.mean(sampled**2))))
    rate = 1.0 / s_per_byte if s_per_byte > 0 else None
    return CollectiveLine(
        op=op, group=group, backend=backend, world=world, nodes=nodes, sizes=len(points),
        smallest_bytes=float(sizes[0]), largest_bytes=float(sizes[-1]),
        latency_s=latency_s, latency_sd_s=None if sds is None else sds[0],
        bytes_per_s=rate, bytes_per_s_sd=None if sds is None or rate is None else sds[1] * rate**2,
        bus_bytes_per_s=None if rate is None else rate * bus_factor(op, world),
        residual_ratio=float(np.sqrt(np.mean(((latency_s + s_per_byte * sizes) / times_s - 1.0) ** 2))),
    )  # fmt: skip


def _fit(sizes: Floats, times_s: Floats, sampled_sd: float) -> tuple[tuple[float, float], tuple[float, float] | None]:
    """Latency and time per byte, both non-negative, with their standard errors.

    Args:
        sizes: message sizes in bytes, `[size]`, two or more.
        times_s: times, `[size]`.
        sampled_sd: relative standard deviation of a time from its samples; 0 if unknown.
    """
    rows = np.stack([1.0 / times_s, sizes / times_s], axis=-1)
    scale = rows.max(axis=0)  # seconds and seconds per byte differ by orders of magnitude
    weights = np.ones(len(sizes))
    best = _least(rows / scale, weights)
    for _ in range(ROUNDS):
        errors = rows / scale @ best - 1.0
        limit = HUBER * max(MAD_TO_SD * float(np.median(np.abs(errors))), LEAST_SD)
        weights = np.minimum(1.0, limit / np.maximum(np.abs(errors), limit))
        before, best = best, _least(rows / scale, weights)
        if np.allclose(before, best, rtol=1e-10, atol=0.0):
            break
    latency_s, s_per_byte = (best / scale).tolist()
    return (latency_s, s_per_byte), _sds(rows, weights, rows @ (best / scale) - 1.0, sampled_sd)


def _least(rows: Floats, weights: Floats) -> Floats:
    """Fit two non-negative coefficients by weighted least squares of `rows @ coefficients - 1`."""
    root = np.sqrt(weights)
    coefficients = np.linalg.lstsq(rows * root[:, None], root, rcond=None)[0]
    if (coefficients >= 0).all():
        return np.asarray(coefficients, dtype=np.float64)
    single_coefficients = [
        float(weights @ rows[:, column]) / float(weights @ rows[:, column] ** 2) for column in (0, 1)
    ]
    edges = np.diag(single_coefficients)
    squared_errors = [float(weights @ (rows @ edge - 1.0) ** 2) for edge in edges]
    return np.asarray(edges[int(np.argmin(squared_errors))], dtype=np.float64)


def _sds(rows: Floats, weights: Floats, errors: Floats, sampled_sd: float) -> tuple[float, float] | None:
    """Standard errors of both coefficients, from the residuals of the line but at least from `sampled_sd`."""
    free = len(rows) - 2
    residual_sd = float(np.sqrt(weights @ errors**2 / free)) if free > 0 else 0.0
    sd = max(residual_sd, sampled_sd)
    if sd == 0.0 and free <= 0:
        return None
    scale = rows.max(axis=0)
    scaled = rows / scale
    covariance = np.linalg.pinv(scaled.T @ (scaled * weights[:, None])) * sd**2
    latency_sd, per_byte_sd = (np.sqrt(np.diag(covariance)) / scale).tolist()
    return latency_sd, per_byte_sd
