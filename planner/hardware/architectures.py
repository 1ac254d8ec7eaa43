"""GPU architectures: rows of `catalog/architectures.csv`, what a generation of parts has in common."""

from __future__ import annotations

from planner.lazy import dataclass
from planner.rows import CATALOG, Catalogue, Row

BLOCK_SCALES = ("mx", "nvfp4")
"""Block-scaled formats of matrix units: one scale per 32 elements (OCP Microscaling) or per 16 (NVFP4)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Architecture:
    """What a generation of GPUs has in common beyond the figures of its parts."""

    name: str
    vendor: str | None
    """None for a CPU."""
    year: int
    """Year of its first part."""
    parameters_of: str
    """The architecture whose parameter rows stand for it where it has none of its own."""
    reference_gpu: str | None
    """Catalogue id of the GPU whose measured matrix rate its efficiency parameters describe."""
    fused_attention: bool
    """Whether FlashAttention-2 or a comparable fused kernel runs on it."""
    asynchronous_units: bool
    """Matrix units fed asynchronously (wgmma, TMA): attention kernels took years to use them (arXiv 2407.08608)."""
    switch_reduces: bool
    """Its NVLink switch reduces (NVLS)."""
    overlaps_tp: bool
    """Tuned stacks split matrix products on it to hide tensor parallel communication (Transformer Engine)."""
    block_scales: tuple[str, ...]
    """Of `BLOCK_SCALES`, those that its matrix units take."""
    sparse_ratio: float | None
    """Peak with structured sparsity over the dense one; None where it has none. No plan uses it."""
    source: str
    date: str


def _architecture(row: Row) -> Architecture:
    return Architecture(
        name=row.text("id"),
        vendor=row.opt_text("vendor"),
        year=row.integer("year", low=2012, high=2035),
        parameters_of=row.text("parameters_of"),
        reference_gpu=row.opt_text("reference_gpu"),
        fused_attention=row.flag("fused_attention"),
        asynchronous_units=row.flag("asynchronous_units"),
        switch_reduces=row.flag("switch_reduces"),
        overlaps_tp=row.flag("overlaps_tp"),
        block_scales=row.words("block_scales"),
        sparse_ratio=row.opt_number("sparse_ratio", low=1, high=4),
        source=row.text("source"),
        date=row.text("date"),
    )


ARCHITECTURES = Catalogue(CATALOG / "architectures.csv", _architecture, what="GPU architecture", listing="mpplan gpus")


def find_architecture(name: str) -> Architecture:
    """The architecture of a GPU row.

    Raises:
        UsageError: the catalogue has no such architecture.
    """
    return ARCHITECTURES.find(name)
