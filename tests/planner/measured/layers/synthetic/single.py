"""The law of single kernels: products by tiles and waves, attention by length, streams of memory through a cache."""

from __future__ import annotations

from math import ceil
from typing import NamedTuple

from tests.planner.measured.layers.synthetic.gpu import SyntheticGpu

TILES = ((128, 256, 1.0), (128, 128, 0.93), (64, 128, 0.78), (64, 64, 0.6))
"""Rows, columns and relative rate of the tiles that a product may be cut into."""
SPLITS = (1, 2, 4, 8)
"""Parts that the inner dimension may be cut into."""
PROLOGUE = 160.0
"""Inner dimension whose arithmetic takes as long as filling and draining a tile's pipeline."""
SHORT_FORWARD, SHORT_BACKWARD = 350.0, 600.0
"""Length at which attention reaches half of its rate."""
SMALL_HEAD = 0.72
"""Rate of attention with heads of 64 over that with heads of 128."""
BACKWARD_FLOP, BACKWARD_RATE = 2.5, 0.82
"""Of the backward kernel of attention, over the forward one."""
QUERY_BLOCK = 128
STREAM = 0.9
"""Bandwidth of element-wise kernels over that of the memory."""
CACHED = 0.9
"""How much faster a stream is that all but fits into the cache."""


class Kernel(NamedTuple):
    """What one kernel needs: seconds at the full clock, joules at the full clock, and the host's time to launch it."""

    arithmetic_s: float
    traffic_s: float
    arithmetic_j: float
    traffic_j: float
    host_s: float


def product(gpu: SyntheticGpu, compute: str, m: float, n: float, k: float, *, host_s: float = 0.0) -> Kernel:
    """`[m, k] x [k, n]` in the best cut of those that a library would try."""
    size = 4.0 if compute in ("fp32", "tf32") else 1.0 if compute.startswith("fp8") else 2.0
    moved = (m * k + n * k) * size + m * n * max(size, 2.0)
    seconds, merged = min(_cuts(gpu, compute, m, n, k))
    moved += merged
    return Kernel(
        arithmetic_s=seconds,
        traffic_s=moved / gpu.memory_bytes_per_s,
        arithmetic_j=2.0 * m * n * k * gpu.j_per_flop[compute],
        traffic_j=moved * gpu.j_per_byte,
        host_s=host_s,
    )


def _cuts(gpu: SyntheticGpu, compute: str, m: float, n: float, k: float) -> list[tuple[float, float]]:
    """Seconds of arithmetic and bytes of partial results, by cut."""
    flop_per_s = gpu.flop_per_s[compute] / gpu.sm_count
    cuts = []
    for rows, columns, rate in TILES:
        for parts in SPLITS:
            tiles = ceil(m / rows) * ceil(n / columns) * parts
            each_s = 2.0 * rows * columns * (k / parts + PROLOGUE) / (flop_per_s * rate)
            merged = m * n * 8.0 * parts if parts > 1 else 0.0
            cuts.append((ceil(tiles / gpu.sm_count) * each_s + merged / gpu.memory_bytes_per_s, merged))
    return cuts


def attention(
    gpu: SyntheticGpu, operand: str, batch: float, heads: float, head_dim: float, length: float, *, host_s: float = 0.0,
    backward: bool = False, causal: bool = True,
) -> Kernel:  # fmt: skip
    """Fused attention, or its backward kernel."""
    flop = 2.0 * batch * heads * head_dim * length**2 * (1.0 if causal else 2.0)
    blocks = batch * heads * ceil(length / QUERY_BLOCK)
    waves = ceil(blocks / gpu.sm_count) * gpu.sm_count / blocks
    rate = gpu.attention_flop_per_s[operand] * (SMALL_HEAD if head_dim <= 64 else 1.0)
    short = SHORT_FORWARD
    if backward:
        flop, rate, short = BACKWARD_FLOP * flop, BACKWARD_RATE * rate, SHORT_BACKWARD
    moved = 4.0 * batch * heads * head_dim * length * (4.0 if operand == "float32" else 2.0)
    compute = {"float32": "fp32", "float16": "fp16", "bfloat16": "bf16"}[operand]
    return Kernel(
        arithmetic_s=flop / rate * (1.0 + short / length) * waves,
        traffic_s=moved / gpu.memory_bytes_per_s,
        arithmetic_j=flop * gpu.j_per_flop[compute],
        traffic_j=moved * gpu.j_per_byte,
        host_s=host_s,
    )


def stream(gpu: SyntheticGpu, moved: float, *, host_s: float = 0.0, rate: float = STREAM) -> Kernel:
    """An element-wise kernel; what nearly fits into the cache runs faster than the memory."""
    cached = min(max((gpu.l2_bytes - moved) / gpu.l2_bytes, 0.0), 1.0)
    faster = 1.0 + CACHED * cached
    return Kernel(
        arithmetic_s=0.0,
        traffic_s=moved / (gpu.memory_bytes_per_s * rate * faster),
        arithmetic_j=0.0,
        traffic_j=moved * gpu.j_per_byte / faster,
        host_s=host_s,
    )


def nothing(host_s: float) -> Kernel:
    """A kernel too small to matter, which must be launched all the same."""
    return Kernel(0.0, 0.0, 0.0, 0.0, host_s)
