"""GPU architectures: rows of `catalog/architectures.csv` with the properties that a generation of parts shares."""

from __future__ import annotations

from planner.lazy import dataclass
from planner.rows import CATALOG, Catalogue, Row

BLOCK_SCALES = ("mx", "nvfp4")
"""Block-scaled formats of matrix units: one scale per 32 elements (OCP Microscaling) or per 16 (NVFP4)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Architecture:
    """Properties that a generation of GPUs shares, beyond the figures of its parts."""

    name: str
    vendor: str | None
    """Vendor of the GPUs; None for a CPU."""
    year: int
    """Launch year of its first part."""
    parameters_of: str
    """The architecture whose parameter rows are used where it has no rows of its own."""
    reference_gpu: str | None
    """Catalogue id of the GPU whose measured matrix rate its efficiency parameters describe."""
    fused_attention: bool
    """Whether FlashAttention-2 or a comparable fused kernel runs on it."""
    asynchronous_units: bool
    """Whether its matrix units are fed asynchronously (wgmma, TMA), which attention kernels took years to exploit
    (arXiv 2407.08608)."""
    switch_reduces: bool
    """Whether its NVLink switch performs reductions (NVLS)."""
    peer_links: bool
    """Whether each pair of GPUs in a node has a link of its own (xGMI), in place of a switch that all of them share."""
    overlaps_tp: bool
    """Whether tuned stacks split matrix products on it to hide tensor parallel communication (Transformer Engine)."""
    block_scales: tuple[str, ...]
    """The `BLOCK_SCALES` that its matrix units support."""
    sparse_ratio: float | None
    """Peak with structured sparsity over the dense peak; None without sparsity support. No plan uses it."""
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
        peer_links=row.flag("peer_links"),
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
