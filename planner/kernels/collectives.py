"""Measured collectives inside one NVLink domain: time by operation, group size and message size, for a GPU.

Bus factors are from nccl-tests, `doc/PERFORMANCE.md`: 2(n-1)/n of the bytes for all-reduce, (n-1)/n for the others.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cache, lru_cache

import numpy as np

from planner.evidence import Evidence, EvidenceKind
from planner.hardware.architectures import find_architecture
from planner.hardware.catalogue import load_gpus
from planner.hardware.gpu import Gpu
from planner.kernels.catalogue import kernel_rows, load_surface
from planner.kernels.surface import Axis, Surface, Value
from planner.lazy import dataclass

COLLECTIVES = ("all_reduce", "all_gather", "reduce_scatter", "all_to_all")
"""Operations with surfaces, by the names of `catalogue.OPERATIONS`."""

COLLECTIVE_AXES = (Axis(name="gpus", first=1, count=3), Axis(name="bytes", first=10, count=24))
"""Groups of 2, 4 and 8 GPUs; messages of 1 KiB to 8 GiB."""

MOST_MEASURED = 8.0
"""GPUs in the largest measured group; larger groups are assumed to have the same bus bandwidth."""
LARGE_BYTES = 2.0**33
"""Message size used as representative of large messages."""
SPREAD_PER_LOG = 0.45
"""Standard deviation per e-fold between the link rates of two GPUs, found by predicting A100, H100 and B200 from each
other with this rule (`docs/kernels.md`)."""
SAME_LINK = 0.04
"""Standard deviation between two GPUs with the same link: H200 predicted from H100, B300 and GB200 from B200."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CollectiveSurfaces:
    """The collectives of one GPU."""

    by_operation: Mapping[str, Surface]
    """A surface for each of `COLLECTIVES`, with work in bytes on the bus."""
    evidence: Evidence

    @property
    def large_bytes_per_s(self) -> float:
        """Bus bandwidth of a large all-gather over the largest measured group."""
        return large_bytes_per_s(self.by_operation["all_gather"])

    @property
    def log_sd(self) -> float:
        """Standard deviation of the logarithm of a time: due to sizes between nodes, releases and the transfer."""
        return max(float(np.hypot(surface.spread, surface.stack_spread)) for surface in self.by_operation.values())


def bus_bytes(operation: str, message_bytes: Value, gpus: Value) -> Value:
    """Bytes that one message of a collective moves over the bus."""
    share = (gpus - 1.0) / gpus
    return message_bytes * share * (2.0 if operation == "all_reduce" else 1.0)


@lru_cache(maxsize=512)
def large_bytes_per_s(surface: Surface) -> float:
    """Bus bandwidth of a large message over the largest measured group; cached because every evaluation needs it."""
    return float(surface.rate(MOST_MEASURED, LARGE_BYTES))


def collective_s(surface: Surface, operation: str, message_bytes: Value, gpus: Value) -> Value:
    """Seconds of one message inside one NVLink domain; groups above `MOST_MEASURED` get its bus bandwidth."""
    return surface.seconds(bus_bytes(operation, message_bytes, gpus), gpus, np.maximum(message_bytes, 1.0))


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """Properties of a GPU's link by which the nearest measured GPU is chosen."""

    gpu: str
    arch: str
    bytes_per_s: float


def collective_surfaces(gpu: Gpu) -> CollectiveSurfaces | None:
    """The collectives of a GPU, or those of the measured GPU with the nearest link rate, rescaled.

    None without NVLink, and for AMD's links, which run a different library without such measurements.
    """
    if not gpu.nvlink_bytes_per_s or find_architecture(gpu.arch).vendor != "NVIDIA":
        return None
    return _nearest(Link(gpu=gpu.id, arch=gpu.arch, bytes_per_s=gpu.nvlink_bytes_per_s))


@cache
def _nearest(link: Link) -> CollectiveSurfaces:
    measured = sorted({row.gpu for row in kernel_rows().values() if row.operation in COLLECTIVES})
    nearest = min((measured_link(name) for name in measured), key=lambda other: _distance_key(link, other))
    surfaces = {operation: load_surface(f"{operation}:{nearest.gpu}") for operation in COLLECTIVES}
    evidence = _evidence(nearest, link, surfaces["all_gather"].evidence)
    if nearest.gpu != link.gpu:
        surfaces = {name: transferred(surface, name, nearest, link) for name, surface in surfaces.items()}
    return CollectiveSurfaces(by_operation=surfaces, evidence=evidence)


def measured_link(gpu_id: str) -> Link:
    """The link of a GPU in the catalogue that has NVLink."""
    gpu = load_gpus()[gpu_id]
    assert gpu.nvlink_bytes_per_s
    return Link(gpu=gpu.id, arch=gpu.arch, bytes_per_s=gpu.nvlink_bytes_per_s)


def _distance_key(link: Link, measured: Link) -> tuple[float, bool, bool]:
    """Sort key of a measured GPU: e-folds between the link rates, then other GPU, then other architecture."""
    return _log_ratio(link, measured), link.gpu != measured.gpu, link.arch != measured.arch


def _log_ratio(link: Link, measured: Link) -> float:
    return abs(float(np.log(link.bytes_per_s / measured.bytes_per_s)))


def transferred(surface: Surface, operation: str, measured: Link, link: Link) -> Surface:
    """Transfer a surface to another GPU by the ratio of link rates.

    The time of the smallest message is kept; the additional time of larger messages is rescaled.
    """
    groups, sizes = np.meshgrid(*(axis.nodes for axis in surface.axes), indexing="ij")
    work = bus_bytes(operation, sizes, groups)
    seconds = work / np.exp(surface.log_rate)
    start = seconds[:, :1]
    moved = start + (seconds - start) * (measured.bytes_per_s / link.bytes_per_s)
    spread = np.hypot(surface.spread, SAME_LINK + SPREAD_PER_LOG * _log_ratio(link, measured))
    return replace(surface, id=f"{surface.id}:{link.gpu}", log_rate=np.log(work / moved), spread=float(spread))


def _evidence(measured: Link, link: Link, source: Evidence) -> Evidence:
    what = f"collectives by operation, size and group (2, 4, 8 GPUs) inside one node of {measured.gpu}"
    if measured.gpu == link.gpu:
        return replace(source, id=f"kernels:collectives:{link.gpu}", what=what)
    return replace(
        source, id=f"kernels:collectives:{measured.gpu}:{link.gpu}", kind=EvidenceKind.TRANSFERRED, gpu=link.gpu,
        what=f"{what}; for {link.gpu} by the ratio of link rates",
    )  # fmt: skip
