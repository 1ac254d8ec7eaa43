"""The optimizers: rows of `catalog/optimizers.csv`, each with its state bytes and the paper that introduced it."""

from __future__ import annotations

from planner.evidence import Evidence, EvidenceKind
from planner.rows import CATALOG, Catalogue, Row
from planner.training.optimizer import Optimizer


def _optimizer(row: Row) -> Optimizer:
    return Optimizer(
        id=row.text("id"),
        name=row.text("name"),
        full_moments=row.number("full_moments", high=4),
        fixed_state_bytes=row.number("fixed_state_bytes", high=16),
        paged=row.flag("paged"),
        extra_flop_per_param=row.number("extra_flop_per_param", high=1000),
        evidence=Evidence(
            id=f"optimizer:{row.text('id')}",
            kind=EvidenceKind.PUBLISHED,
            what=f"{row.text('name')}: {row.text('what')}",
            source=row.text("source"),
            date=row.text("date"),
            public=True,
        ),
    )


OPTIMIZERS = Catalogue(CATALOG / "optimizers.csv", _optimizer, what="optimizer")


def load_optimizers() -> dict[str, Optimizer]:
    """All optimizers by id.

    Raises:
        InputFileError: a row of the catalogue is wrong.
    """
    return OPTIMIZERS.by_id


def find_optimizer(name: str) -> Optimizer:
    """Find an optimizer by name or alias (`adam`, `8bit-adam`, `sgd`), ignoring case and punctuation.

    Raises:
        UsageError: no such optimizer; similar names are offered.
    """
    return OPTIMIZERS.find(name)
