"""From measured points to a surface: least squares of the logarithm of the time over the nodes.

A point pulls the nodes around it by its interpolation weights. A weak pull towards a straight line along each axis
fills nodes that no point touches; large misses count less (a lucky or disturbed kernel is not the rule). Compared with
polynomials on shapes held out in `docs/decisions/0008-surfaces-by-nodes.md`.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from planner.evidence import Evidence
from planner.kernels.surface import Axis, Floats, Surface

SMOOTHNESS = 1e-3
"""Weight of a squared second difference between nodes against a squared miss of a point."""
ROUNDS = 3
"""Reweighted least squares: misses beyond `USUAL_MISS` count with their size, not its square."""
USUAL_MISS = 0.02
RIDGE = 1e-9
"""Keeps the equations solvable where no point touches a corner of the box."""


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
    """A surface through measured times, nowhere faster than the fastest point.

    Args:
        name: id of the surface.
        axes: its dimensions.
        sizes: the shapes, `[point, axis]`.
        work: FLOP, elements or bytes of each point, `[point]`.
        seconds: measured times, `[point]`.
        floor_s: least time of a launch.
        spread: as held-out points say; 0 where nobody looked yet.
        stack_spread: between software stacks.
        evidence: where the points are from.
    """
    node_work = _log_work(axes, sizes, work)
    log_s = rising(_nodes(axes, sizes, np.log(seconds) - np.log(work)) + node_work)
    return Surface(
        id=name, axes=axes, log_rate=np.minimum(node_work - log_s, np.log(np.max(work / seconds))), floor_s=floor_s,
        spread=spread, stack_spread=stack_spread, evidence=evidence,
    )  # fmt: skip


def rising(log_s: Floats) -> Floats:
    """Half way between the least surface above and the greatest below that never falls along an axis."""
    above, below = log_s, np.flip(log_s)
    for number in range(log_s.ndim):
        above = np.maximum.accumulate(above, axis=number)
        below = np.minimum.accumulate(below, axis=number)
    return 0.5 * (above + np.flip(below))


def _log_work(axes: tuple[Axis, ...], sizes: Floats, work: Floats) -> Floats:
    """Logarithm of the work at the nodes: a product of powers of the dimensions, as the points say."""
    logs = np.column_stack([np.ones(len(work)), np.log(sizes)])
    powers = np.linalg.lstsq(logs, np.log(work), rcond=None)[0]
    grid = np.meshgrid(*(np.log(axis.nodes) for axis in axes), indexing="ij")
    total: Floats = powers[0] + sum(power * along for power, along in zip(powers[1:], grid, strict=True))
    return total


def _nodes(axes: tuple[Axis, ...], sizes: Floats, target: Floats) -> Floats:
    """Values at the nodes whose interpolation meets the targets, one dimension per axis."""
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
