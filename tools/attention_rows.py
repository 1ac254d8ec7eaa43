"""Convert raw measurements of fused attention to the data to which surfaces are fitted.

The measured inference stacks copy keys and values into a cache within the measured time. Training has no cache, so the
time that each additional key-value head adds is subtracted, per byte. A training kernel also reads keys and values, but
hides this behind its arithmetic. No correction for bursts is made: kernels that ran for a second (H200, B200, GB200)
were no slower.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from planner.kernels.surface import ATTENTION_AXES, Axis
from planner.rates.ladder import BEST_OF_STACKS
from tools.kernel_rows import COMPUTES, GPUS, Floats, read_raw

KIND = "bfloat16"
"""Type of attention, which training stacks keep in 16 bits."""
FEW_KV_HEADS = 8
"""Number of key-value heads with which a layer without groups is compared."""
LEAST_TOKENS = 8192
"""Number of tokens from which copying keys and values takes longer than its launch."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Attention:
    """Causal attention of one GPU in the forward pass, each array `[point]`."""

    system: str
    """Name in the raw files."""
    gpu: str
    compute: str
    batch: Floats
    heads: Floats
    kv_heads: Floats
    head_dim: Floats
    length: Floats
    measured_s: Floats
    """Median over stacks, including the copy into the cache."""
    copy_s_per_byte: float
    """Copy time per byte of keys and values that are copied into the cache."""
    stack_spread: float
    """Standard deviation of the logarithm between stacks: the median over large shapes."""

    @property
    def kv_bytes(self) -> Floats:
        """Bytes of keys and values in 16 bits."""
        return 4.0 * self.batch * self.length * self.kv_heads * self.head_dim

    @property
    def copy_s(self) -> Floats:
        """Time of the copy into the cache, limited to half of the measured time."""
        return np.minimum(self.kv_bytes * self.copy_s_per_byte, 0.5 * self.measured_s)

    @property
    def kernel_s(self) -> Floats:
        """Time without the copy."""
        return self.measured_s - self.copy_s

    @property
    def floor_s(self) -> float:
        """Time of the shortest kernel."""
        return float(self.kernel_s.min())

    @property
    def flop(self) -> Floats:
        """FLOP of the causal half."""
        return 2.0 * self.batch * self.heads * self.length**2 * self.head_dim

    @property
    def sizes(self) -> Floats:
        """Sizes in the order of `ATTENTION_AXES`, `[point, axis]`."""
        return np.column_stack([self.head_dim, self.batch * self.heads, self.length])

    @property
    def axes(self) -> tuple[Axis, ...]:
        """Axes of the surface, without head sizes that were not measured."""
        size, *others = ATTENTION_AXES
        measured = size.nodes[np.isin(size.nodes, self.head_dim)]
        return Axis(name=size.name, first=int(np.log2(measured[0])), count=len(measured)), *others


COLUMNS = ("batch_size", "num_heads", "num_key_value_heads", "head_dim", "isl")


def read_attention(folder: Path) -> list[Attention]:
    """Read attention of every GPU, with keys and values in the same type as the queries."""
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
    """Return the time per byte that keys and values add if each head has its own: the median over shapes."""
    times = {tuple(row[:5]): row[5] for row in table}
    added = []
    for (batch, heads, kv_heads, head_dim, length), seconds in times.items():
        few = (batch, heads, float(FEW_KV_HEADS), head_dim, length)
        if kv_heads == heads > FEW_KV_HEADS and batch * length >= LEAST_TOKENS and few in times:
            more_bytes = 4.0 * batch * length * (kv_heads - FEW_KV_HEADS) * head_dim
            added.append((seconds - times[few]) / more_bytes)
    return float(max(np.median(added), 0.0))
