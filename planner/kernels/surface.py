"""A measured surface: the rate of one kind of kernel by shape, interpolated between nodes one octave apart.

Between two nodes, the logarithm of the rate is linear in the logarithm of each dimension, so a time that does not fall
from node to node never falls as a dimension grows. Outside the measured box, the rate is that of the nearest point of
the box: the time grows with the work. No launch takes less than the floor.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import replace
from functools import cache, lru_cache

import numpy as np
import numpy.typing as npt

from planner.evidence import Evidence
from planner.lazy import dataclass

Floats = npt.NDArray[np.float64]
Value = float | Floats
"""One value or an array of values; the arithmetic is the same."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Axis:
    """One dimension of a surface: nodes at `2^first`, `2^(first + 1)` and so on."""

    name: str
    first: int
    """Exponent of the first node."""
    count: int
    """Number of nodes; with a single node the rate is the same for every size."""

    @property
    def nodes(self) -> Floats:
        """The sizes of the nodes, `[node]`."""
        return np.exp2(np.arange(self.first, self.first + self.count, dtype=np.float64))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Surface:
    """The rate of a kernel by shape, with its uncertainty."""

    id: str
    axes: tuple[Axis, ...]
    log_rate: Floats
    """Logarithm of work per second at the nodes, one dimension per axis. Work is FLOP for products and attention,
    elements for casts, bytes for collectives."""
    floor_s: float
    """Shortest time of a launch."""
    spread: float
    """Standard deviation of the logarithm of a held-out shape's time around the surface."""
    stack_spread: float
    """Standard deviation of the logarithm of the time between software stacks that ran the same shape."""
    evidence: Evidence
    cast_bytes_per_s: float | None = None
    """Bandwidth of casting an activation to the narrow operands; None if nothing is cast or it was not measured."""

    def rate(self, *sizes: Value) -> Value:
        """Work per second at the given shapes.

        Args:
            sizes: one value or array per axis, positive; they broadcast.
        """
        return np.exp(self._log_rate_at(sizes))

    def seconds(self, work: Value, *sizes: Value) -> Value:
        """Seconds of an amount of work at the given shapes; `sizes` as in `rate`."""
        return np.maximum(work * np.exp(-self._log_rate_at(sizes)), self.floor_s)

    def _log_rate_at(self, sizes: Sequence[Value]) -> Floats:
        """Multilinear interpolation in the logarithms, clamped to the box, along one axis after another."""
        base: npt.NDArray[np.intp] | int = 0
        beyond: list[Floats] = []
        for axis, size, stride in zip(self.axes, sizes, _strides(self.axes), strict=True):
            if axis.count == 1:
                base = base + np.zeros(np.shape(size), dtype=np.intp)  # it broadcasts like any other size
                continue
            at = np.minimum(np.maximum(np.log2(size) - axis.first, 0.0), axis.count - 1.0)
            cell = np.minimum(at.astype(np.intp), axis.count - 2)
            beyond.append(at - cell)
            base = base + cell * stride
        nodes = self.log_rate.ravel()[np.add.outer(_corners(self.axes), base)]
        for share in beyond:  # interpolating along the first axis halves the corners
            near, far = nodes[: len(nodes) // 2], nodes[len(nodes) // 2 :]
            nodes = near + share * (far - near)
        return np.asarray(nodes[0])


@cache
def _strides(axes: tuple[Axis, ...]) -> tuple[int, ...]:
    """Index steps between neighbouring nodes of each axis in the flattened table."""
    return tuple(math.prod(axis.count for axis in axes[number + 1 :]) for number in range(len(axes)))


@cache
def _corners(axes: tuple[Axis, ...]) -> npt.NDArray[np.intp]:
    """Index offsets of the corners of a cell in the flattened table; the first node of the first axis comes first."""
    steps = ((0, stride) for axis, stride in zip(axes, _strides(axes), strict=True) if axis.count > 1)
    return np.array([sum(corner) for corner in itertools.product(*steps)], dtype=np.intp)


MATMUL_AXES = (Axis(name="n", first=9, count=8), Axis(name="k", first=9, count=8), Axis(name="m", first=4, count=12))
"""Shapes of a product `[m, k] x [k, n]`: n and k from 512 to 65 536, m from 16 to 32 768."""


FEWEST_ROWS = MATMUL_AXES[2].nodes[0]
"""Rows of the smallest measured products, which take as long as it takes to read their weights."""


def product_s(surface: Surface, m: Value, n: Value, k: Value) -> Value:
    """Seconds of a product `[m, k] x [k, n]` on a surface with `MATMUL_AXES`.

    Products of fewer than `FEWEST_ROWS` rows read as many weights, and tensor cores round their rows up: they take as
    long as products of that many.
    """
    return surface.seconds(2.0 * np.maximum(m, FEWEST_ROWS) * n * k, n, k, m)


ATTENTION_AXES = (
    Axis(name="head_dim", first=6, count=2),
    Axis(name="heads", first=0, count=13),
    Axis(name="length", first=9, count=6),
)
"""Shapes of causal attention: heads of 64 and 128, 1 to 4 096 of them (heads times sequences), 512 to 16 384 tokens."""

LARGE = {"n": 8192.0, "k": 8192.0, "m": 8192.0, "head_dim": 128.0, "heads": 64.0, "length": 8192.0}
"""Sizes of the kernel used as representative of large kernels, by axis."""


def attention_s(surface: Surface, flop: Value, head_dim: Value, heads: Value, length: Value) -> Value:
    """Seconds of attention on a surface with `ATTENTION_AXES`.

    Beyond the longest measured length, the rate is that of the same number of query blocks at that length: more heads
    of that length fill a GPU like fewer, longer ones.

    Args:
        surface: measured forward rates of causal attention.
        flop: FLOP of the attention.
        head_dim: size of a query head.
        heads: query heads times sequences.
        length: length of a causal sequence whose queries attend to as many keys on average.
    """
    longer = np.maximum(length / surface.axes[-1].nodes[-1], 1.0)
    return surface.seconds(flop, head_dim, heads * longer, length)


@lru_cache(maxsize=512)
def at_most(surface: Surface, rate: float) -> Surface:
    """A surface no rate of which exceeds the given one; the same surface if none does."""
    limit = float(np.log(rate))
    if surface.log_rate.max() <= limit:
        return surface
    return replace(surface, log_rate=np.minimum(surface.log_rate, limit))


@lru_cache(maxsize=512)
def large_flop_per_s(surface: Surface) -> float:
    """Rate of a large product or of large attention; cached because every evaluation needs it."""
    return float(surface.rate(*(LARGE[axis.name] for axis in surface.axes)))
