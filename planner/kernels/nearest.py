"""The surface used for a GPU: its own, or that of the nearest measured GPU, rescaled by the ratio of their limits."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

import numpy as np

from planner.evidence import EvidenceKind
from planner.hardware.architectures import find_architecture
from planner.hardware.catalogue import load_gpus
from planner.hardware.gpu import Gpu
from planner.kernels.catalogue import KernelRow, kernel_rows, load_surface
from planner.kernels.power import OPERAND_BYTES, PowerLaw, product_bytes
from planner.kernels.surface import Floats, Surface, large_flop_per_s
from planner.lazy import dataclass

PEAK = {"fp8-block": "fp8"}
"""Compute type whose peak bounds a surface of the given type; a type that is not listed is bounded by its own peak."""

MOST_CLOCK_GAIN = 1.12
"""Burst over sustained rate of products at the power limit: the gain without any limit (`docs/kernels.md`)."""

UNTHROTTLED_RATIO = 0.85
"""Rate of large BF16 products over the peak where the power limit does not lower the clock: the median over 396 shapes
on an RTX PRO 6000 (0.85), an H100 (0.83) and an A100 (0.81) (ai-dynamo/aiconfigurator@095f58a51). A GPU that its limit
throttles below this ratio can gain up to it: an L40S sustains 0.56 at 350 W, while an RTX 4090 has half its units and
450 W."""

SPREAD_PER_LOG = 0.1
"""Additional standard deviation per e-fold between the limits of two GPUs; assumed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Limits:
    """Limits that bound the kernels of a GPU."""

    gpu: str
    arch: str
    peak_flop_per_s: float
    """Peak at the clock under load."""
    memory_bytes_per_s: float
    board_w: float | None
    """Board power limit; None if the stated limit is not the GPU's alone (a module that includes its CPU)."""
    clock_ratio: float
    """Clock under load over the datasheet's."""


def _limits(gpu: Gpu, compute: str) -> _Limits | None:
    kind = PEAK.get(compute, compute)
    if kind not in gpu.peak_flop_per_s:
        return None
    peak = gpu.reachable_flop_per_s[kind]
    return _Limits(
        gpu=gpu.id, arch=gpu.arch, peak_flop_per_s=peak, memory_bytes_per_s=gpu.memory_bytes_per_s,
        clock_ratio=peak / gpu.peak_flop_per_s[kind],
        board_w=gpu.tdp_w if gpu.power_scope == "board" and gpu.tdp_w > 0 else None,
    )  # fmt: skip


def nearest_surface(operation: str, gpu: Gpu, compute: str, law: PowerLaw, *, peak_of: str = "") -> Surface | None:
    """The surface of a GPU's kernels; None if no GPU of its architecture family was measured in that type.

    Args:
        operation: `matmul` or `attention`.
        gpu: the GPU.
        compute: type of the operands: bf16 (also used for fp16), fp8, fp8-block or fp4.
        law: how the clock follows the power limit.
        peak_of: compute type whose peak bounds the kernels, if it differs from `compute` (fp16).
    """
    limits = _limits(gpu, peak_of or compute)
    return None if limits is None else _matched(operation, limits, compute, law)


@lru_cache(maxsize=256)
def _matched(operation: str, limits: _Limits, compute: str, law: PowerLaw) -> Surface | None:
    relatives = [row for row in kernel_rows().values() if row.operation == operation and row.compute == compute]
    relatives = [row for row in relatives if _family(load_gpus()[row.gpu].arch) == _family(limits.arch)]
    if not relatives:
        return None
    nearest = min(relatives, key=lambda row: _distance(limits, _measured(row)))
    surface = load_surface(nearest.id)
    return surface if nearest.gpu == limits.gpu else _rescaled(surface, _measured(nearest), limits, compute, law)


def _family(arch: str) -> str:
    return find_architecture(arch).parameters_of


def _measured(row: KernelRow) -> _Limits:
    limits = _limits(load_gpus()[row.gpu], row.compute)
    assert limits is not None
    return limits


NAMESAKE = 1e-6
"""Distance between two different GPUs with the same limits."""


def _distance(limits: _Limits, other: _Limits) -> float:
    """Distance between the limits of two GPUs in e-folds; 0 only between a GPU and itself (see `NAMESAKE`)."""
    peaks = abs(np.log(limits.peak_flop_per_s / other.peak_flop_per_s))
    return float(
        peaks + abs(np.log(limits.memory_bytes_per_s / other.memory_bytes_per_s)) + NAMESAKE * (limits != other)
    )


def _rescaled(surface: Surface, measured: _Limits, wanted: _Limits, compute: str, law: PowerLaw) -> Surface:
    """Rescale a surface to another GPU.

    Arithmetic time scales with peaks and clocks, operand traffic with bandwidths; no rate exceeds the peak.
    """
    flop, moved = _work(surface, compute)
    arithmetic_s, traffic_s = flop / measured.peak_flop_per_s, moved / measured.memory_bytes_per_s
    gain = min(_clock_gain(measured, wanted, law), _most_gain(surface, measured, compute))
    faster = wanted.peak_flop_per_s / measured.peak_flop_per_s * gain
    wider = wanted.memory_bytes_per_s / measured.memory_bytes_per_s
    stretch: Floats = (arithmetic_s / faster + traffic_s / wider) / (arithmetic_s + traffic_s)
    evidence = replace(
        surface.evidence, id=f"{surface.evidence.id}:{wanted.gpu}", kind=EvidenceKind.TRANSFERRED,
        what=f"{surface.evidence.what}; for {wanted.gpu} by the ratio of peak, bandwidth and power limit",
        gpu=wanted.gpu,
    )  # fmt: skip
    cast = surface.cast_bytes_per_s
    log_rate = np.minimum(surface.log_rate - np.log(stretch), np.log(wanted.peak_flop_per_s))
    return replace(
        surface, id=f"{surface.id}:{wanted.gpu}", log_rate=log_rate, evidence=evidence,
        spread=float(np.hypot(surface.spread, SPREAD_PER_LOG * _distance(measured, wanted))),
        cast_bytes_per_s=None if cast is None else cast * wider,
    )  # fmt: skip


def _work(surface: Surface, compute: str) -> tuple[Floats, Floats]:
    """FLOP and bytes at the nodes of a surface of products or of causal attention."""
    names = [axis.name for axis in surface.axes]
    size = dict(zip(names, np.meshgrid(*(axis.nodes for axis in surface.axes), indexing="ij"), strict=True))
    if "length" in size:
        rows = size["heads"] * size["length"] * size["head_dim"]
        return 2.0 * rows * size["length"], 4.0 * rows * OPERAND_BYTES[compute]
    m, n, k = size["m"], size["n"], size["k"]
    return 2.0 * m * n * k, np.asarray(product_bytes(m, n, k, compute))


def _most_gain(surface: Surface, measured: _Limits, compute: str) -> float:
    """Largest gain of products when no power limit lowers their clock."""
    if compute != "bf16" or "m" not in (axis.name for axis in surface.axes):
        return MOST_CLOCK_GAIN
    return max(MOST_CLOCK_GAIN, UNTHROTTLED_RATIO * measured.peak_flop_per_s / large_flop_per_s(surface))


def _clock_gain(measured: _Limits, wanted: _Limits, law: PowerLaw) -> float:
    """Clock that the power limit allows, relative to the measured GPU's, at the same energy per FLOP.

    The energy is the same at the clocks of the datasheets; what a clock above them costs follows the law.
    """
    if measured.board_w is None or wanted.board_w is None:
        return 1.0
    idle_w = law.idle_ratio * wanted.board_w
    faster = wanted.clock_ratio / measured.clock_ratio
    spent_w = (1.0 - law.idle_ratio) * measured.board_w * wanted.peak_flop_per_s / measured.peak_flop_per_s
    spent_w *= faster ** (law.clock_exponent - 1.0)
    return float(law.clock((wanted.board_w - idle_w) / spent_w))
