"""Published failure rates of large training jobs: rows of `catalog/failures.csv`."""

from __future__ import annotations

from planner.evidence import Evidence, EvidenceKind
from planner.lazy import dataclass
from planner.rows import CATALOG, Catalogue, Row


@dataclass(frozen=True, slots=True, kw_only=True)
class FailureRow:
    """A published figure on the reliability of training jobs."""

    id: str
    what: str
    rate_per_gpu_hour: float | None
    """Interruptions per GPU and hour; None if the row gives a share of time instead."""
    ratio: float | None
    """Share of wall-clock time spent training; None if the row gives a rate."""
    gpu: str
    """Catalogue id of the GPU on which it was observed."""
    system: str
    evidence: Evidence
    notes: str


def _row(row: Row) -> FailureRow:
    return FailureRow(
        id=row.text("id"),
        what=row.text("what"),
        rate_per_gpu_hour=row.opt_number("rate_per_gpu_hour", low=1e-8, high=1e-1),
        ratio=row.opt_number("ratio", high=1),
        gpu=row.text("gpu"),
        system=row.text("system"),
        evidence=Evidence(
            id=f"failures:{row.text('id')}",
            kind=EvidenceKind.PUBLISHED,
            what=f"{row.text('what')}, {row.text('system')}",
            source=row.text("source"),
            date=row.text("date"),
            gpu=row.text("gpu"),
            public=True,
        ),
        notes=row.cell("notes"),
    )


FAILURES = Catalogue(CATALOG / "failures.csv", _row)


def load_failures() -> dict[str, FailureRow]:
    """All rows by id.

    Raises:
        InputFileError: a row of the catalogue is wrong.
    """
    return FAILURES.by_id


def interruptions_per_gpu_hour() -> FailureRow:
    """The rate assumed for an unknown cluster, from the largest published job: 1.97e-5 per GPU and hour."""
    return load_failures()["llama3-interruptions"]
