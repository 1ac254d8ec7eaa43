"""Measured collectives, health thresholds and latency constants: rows of `catalog/interconnect.csv`."""

from __future__ import annotations

from planner.lazy import dataclass
from planner.rows import CATALOG, Catalogue, Row

KINDS = ("measured", "threshold", "constant", "spec")


@dataclass(frozen=True, slots=True, kw_only=True)
class InterconnectRow:
    """A measurement of a collective at one message size, or a constant of a latency model. SI units."""

    id: str
    kind: str
    """`measured`: a benchmark; `threshold`: the lowest rate that passes a provider's health check; `constant`: a
    constant of NCCL's latency model; `spec`: a vendor's figure."""
    system: str
    """Machine, or the table that contains a constant."""
    gpu_id: str | None
    """Catalogue id of the GPU; None for constants."""
    fabric: str | None
    """Links in use; NVLINK, PCI or NET for constants."""
    nodes: int | None
    gpus: int | None
    """Ranks of the collective."""
    collective: str
    """`all_reduce`, `all_gather`, `reduce_scatter`, `p2p_write`, `ib_write`, or the quantity that a constant
    describes."""
    algorithm: str | None
    """Algorithm; for constants algorithm/protocol in NCCL's names (`Ring/Simple`); None if not stated."""
    message_bytes: float | None
    """Size as nccl-tests counts it (the whole buffer of one rank)."""
    time_s: float | None
    """Time of the collective, or the latency given by a constant."""
    algorithm_bytes_per_s: float | None
    """Size over time."""
    bus_bytes_per_s: float | None
    """Size over time, times 2(n-1)/n for all-reduce or (n-1)/n for all-gather and reduce-scatter (nccl-tests
    PERFORMANCE.md), which makes it comparable with the rate of a link."""
    efficiency_ratio: float | None
    """Share of the link rate that an algorithm reaches; only in constants."""
    software: str | None
    source: str
    date: str
    """ISO date, month or year by which the figure was published."""
    notes: str


def _row(row: Row) -> InterconnectRow:
    return InterconnectRow(
        id=row.text("id"),
        kind=row.choice("kind", KINDS),
        system=row.text("system"),
        gpu_id=row.opt_text("gpu_id"),
        fabric=row.opt_text("fabric"),
        nodes=row.opt_integer("nodes", low=1, high=100_000),
        gpus=row.opt_integer("gpus", low=2, high=1_000_000),
        collective=row.text("collective"),
        algorithm=row.opt_text("algorithm"),
        message_bytes=row.opt_number("message_bytes", low=1, high=1e12),
        time_s=row.opt_number("time_s", low=1e-8, high=100),
        algorithm_bytes_per_s=row.opt_number("algorithm_bytes_per_s", low=1e3, high=1e13),
        bus_bytes_per_s=row.opt_number("bus_bytes_per_s", low=1e3, high=1e13),
        efficiency_ratio=row.opt_number("efficiency_ratio", low=0, high=1),
        software=row.opt_text("software"),
        source=row.text("source"),
        date=row.text("date"),
        notes=row.cell("notes"),
    )


INTERCONNECT = Catalogue(CATALOG / "interconnect.csv", _row)


def load_interconnect() -> dict[str, InterconnectRow]:
    """All rows by id, in file order.

    Raises:
        InputFileError: a row of the catalogue is wrong.
    """
    return INTERCONNECT.by_id
