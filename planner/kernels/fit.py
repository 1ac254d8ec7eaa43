"""Fit a surface to measured points: least squares of the logarithm of the time over the nodes.

Each point acts on the nodes around it with its interpolation weights. A weak smoothness penalty, which favours a
straight line along each axis, fills nodes that no point touches. Large residuals are down-weighted, since an unusually
fast or disturbed kernel is not representative. `docs/decisions/0008-surfaces-by-nodes.md` compares this with
polynomials on held-out shapes.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from planner.evidence import Evidence
from planner.kernels.surface import Axis, Floats, Surface

SMOOTHNESS = 1e-3
"""Weight of a squared second difference between nodes, relative to a squared residual of a point."""
ROUNDS = 3
"""Rounds of reweighted least squares, in which residuals beyond `USUAL_MISS` count linearly instead of squared."""
USUAL_MISS = 0.02
RIDGE = 1e-9
"""Regularisation that keeps the equations solvable where no point touches a corner of the box."""


def fit_surface(
    name: str,
    axes: tuple[Axis, ...],
    sizes: Floats,
    work: Floats,
    seconds: Floats,
    *,
    floor_s: float,
    spread: float,
    stack_spread: float,
    evidence: Evidence,
) -> Surface:
    """Fit a surface to measured times; it is nowhere faster than the fastest point.

    Args:
        name: id of the surface.
        axes: dimensions of the surface.
        sizes: the shapes, `[point, axis]`.
        work: FLOP, elements or bytes of each point, `[point]`.
        seconds: measured times, `[point]`.
        floor_s: shortest time of a launch.
        spread: spread of held-out points; 0 if not evaluated yet.
        stack_spread: spread between software stacks.
        evidence: source of the points.
    """
    node_work = _log_work(axes, sizes, work)
    log_s = rising(_nodes(axes, sizes, np.log(seconds) - np.log(work)) + node_work)
    return Surface(
        id=name, axes=axes, log_rate=np.minimum(node_work - log_s, np.log(np.max(work / seconds))), floor_s=floor_s,
        spread=spread, stack_spread=stack_spread, evidence=evidence,
    )  # fmt: skip


def rising(log_s: Floats) -> Floats:
    """Make times non-decreasing along every axis.

    The result is the mean of the smallest such surface above the times and the largest such surface below them.
    """
    above, below = log_s, np.flip(log_s)
    for number in range(log_s.ndim):
        above = np.maximum.accumulate(above, axis=number)
        below = np.minimum.accumulate(below, axis=number)
    return 0.5 * (above + np.flip(below))


def _log_work(axes: tuple[Axis, ...], sizes: Floats, work: Floats) -> Floats:
    """Logarithm of the work at the nodes: a product of powers of the dimensions, fitted to the points."""
    logs = np.column_stack([np.ones(len(work)), np.log(sizes)])
    powers = np.linalg.lstsq(logs, np.log(work), rcond=None)[0]
    grid = np.meshgrid(*(np.log(axis.nodes) for axis in axes), indexing="ij")
    total: Floats = powers[0] + sum(power * along for power, along in zip(powers[1:], grid, strict=True))
    return total


def _nodes(axes: tuple[Axis, ...], sizes: Floats, target: Floats) -> Floats:
    """Values at the nodes whose interpolation fits the targets, one dimension per axis."""
    design = _weights(axes, sizes)
    bending = SMOOTHNESS * _bending(tuple(axis.count for axis in axes))
    pull: Floats = np.ones(len(target))
    nodes: Floats = np.zeros(design.shape[1])
    for _ in range(ROUNDS):
        weighted = design * pull[:, None]
        normal = weighted.T @ design + bending + RIDGE * np.eye(len(nodes))
        nodes = np.asarray(np.linalg.solve(normal, weighted.T @ target), dtype=np.float64)
        pull = USUAL_MISS / np.maximum(np.abs(target - design @ nodes), USUAL_MISS)
    return nodes.reshape([axis.count for axis in axes])


def _weights(axes: tuple[Axis, ...], sizes: Floats) -> Floats:
    """Interpolation weight of each node for each point, `[point, node]`."""
    design = np.ones((len(sizes), 1))
    for axis, size in zip(axes, sizes.T, strict=True):
        at = np.clip(np.log2(size) - axis.first, 0.0, axis.count - 1.0)
        hat = np.maximum(1.0 - np.abs(at[:, None] - np.arange(axis.count)), 0.0)
        design = (design[:, :, None] * hat[:, None, :]).reshape(len(sizes), -1)
    return design


def _bending(counts: Sequence[int]) -> Floats:
    """Sum of the squared second differences along every axis, as a quadratic form `[node, node]`."""
    form = np.zeros((int(np.prod(counts)), int(np.prod(counts))))
    for number, count in enumerate(counts):
        second = np.diff(np.eye(count), n=2, axis=0)
        along = second.T @ second
        before, after = int(np.prod(counts[:number])), int(np.prod(counts[number + 1 :]))
        form += np.kron(np.kron(np.eye(before), along), np.eye(after))
    return form
