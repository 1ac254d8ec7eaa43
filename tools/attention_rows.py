"""Raw measurements of fused attention, brought to what surfaces are fitted to.

The inference stacks that were measured copy keys and values into a cache within the time. Training has no cache: what
another key and value head adds to the time is taken out, per byte. A training kernel reads them, too, behind its
arithmetic. Nothing is taken off for bursts: kernels that ran for a second (H200, B200, GB200) were no slower.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from planner.kernels.surface import ATTENTION_AXES, Axis
from planner.rates.ladder import BEST_OF_STACKS
from tools.kernel_rows import COMPUTES, GPUS, Floats, read_raw

KIND = "bfloat16"
"""Training stacks keep attention in 16 bits."""
FEW_KV_HEADS = 8
"""Key and value heads against which a layer without groups is compared."""
LEAST_TOKENS = 8192
"""Tokens from which on the copy of keys and values outweighs its launch."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Attention:
    """Causal attention, forward, of one GPU, `[point]` each."""

    system: str
    """As the raw files name it."""
    gpu: str
    compute: str
    batch: Floats
    heads: Floats
    kv_heads: Floats
    head_dim: Floats
    length: Floats
    measured_s: Floats
    """Median over stacks, with the copy into the cache."""
    copy_s_per_byte: float
    """Of keys and values copied into the cache."""
    stack_spread: float
    """Standard deviation of the logarithm between stacks, median of large shapes."""

    @property
    def kv_bytes(self) -> Floats:
        """Keys and values in 16 bits."""
        return 4.0 * self.batch * self.length * self.kv_heads * self.head_dim

    @property
    def copy_s(self) -> Floats:
        """Copy into the cache, at most half of the whole."""
        return np.minimum(self.kv_bytes * self.copy_s_per_byte, 0.5 * self.measured_s)

    @property
    def kernel_s(self) -> Floats:
        """Time without the copy."""
        return self.measured_s - self.copy_s

    @property
    def floor_s(self) -> float:
        """The shortest kernel of all."""
        return float(self.kernel_s.min())

    @property
    def flop(self) -> Floats:
        """Arithmetic of the causal half."""
        return 2.0 * self.batch * self.heads * self.length**2 * self.head_dim

    @property
    def sizes(self) -> Floats:
        """In the order of `ATTENTION_AXES`, `[point, axis]`."""
        return np.column_stack([self.head_dim, self.batch * self.heads, self.length])

    @property
    def axes(self) -> tuple[Axis, ...]:
        """Those of a surface, less the head sizes that nobody measured."""
        size, *others = ATTENTION_AXES
        measured = size.nodes[np.isin(size.nodes, self.head_dim)]
        return Axis(name=size.name, first=int(np.log2(measured[0])), count=len(measured)), *others


COLUMNS = ("batch_size", "num_heads", "num_key_value_heads", "head_dim", "isl")


def read_attention(folder: Path) -> list[Attention]:
    """Attention of every GPU, with keys and values in the type of the queries."""
    tables: dict[str, list[tuple[float, ...]]] = {}
    for row in read_raw(folder, "attention_forward.csv.gz"):
        if row["attn_dtype"] == row["kv_cache_dtype"] == KIND:
            times = (float(row[key]) * 1e-6 for key in ("median_us", "best_us"))
            tables.setdefault(row["system"], []).append((*(float(row[key]) for key in COLUMNS), *times))
    return [_attention(system, np.array(rows)) for system, rows in sorted(tables.items())]


def _attention(system: str, table: Floats) -> Attention:
    batch, heads, kv_heads, head_dim, length, median, best = table.T
    large = (length >= 4096) & (batch * heads >= 32)
    return Attention(
        system=system, gpu=GPUS[system], compute=COMPUTES[KIND], batch=batch, heads=heads, kv_heads=kv_heads,
        head_dim=head_dim, length=length, measured_s=median, copy_s_per_byte=_copy_s_per_byte(table),
        stack_spread=float(np.median(np.log(median / best)[large]) / BEST_OF_STACKS),
    )  # fmt: skip


def _copy_s_per_byte(table: Floats) -> float:
    """What keys and values add to the time where each head has its own, per byte: median over shapes."""
    times = {tuple(row[:5]): row[5] for row in table}
    added = []
    for (batch, heads, kv_heads, head_dim, length), seconds in times.items():
        few = (batch, heads, float(FEW_KV_HEADS), head_dim, length)
        if kv_heads == heads > FEW_KV_HEADS and batch * length >= LEAST_TOKENS and few in times:
            more_bytes = 4.0 * batch * length * (kv_heads - FEW_KV_HEADS) * head_dim
            added.append((seconds - times[few]) / more_bytes)
    return float(max(np.median(added), 0.0))
