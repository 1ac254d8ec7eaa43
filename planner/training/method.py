"""Training methods: the trained weights, the storage of the frozen weights, and the kind of examples.

The rows are in `catalog/methods.csv`, each with its source.
"""

from __future__ import annotations

from functools import cache

from planner.evidence import Evidence, EvidenceKind
from planner.lazy import dataclass
from planner.rows import CATALOG, Catalogue, Row

TRAINED = ("all", "last-layers", "adapters")
"""Weights that get gradients: all of them, those of the last layers, or small matrices added to frozen weights."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Method:
    """One training method."""

    id: str
    """For example `pretrain`, `sft`, `qlora`."""
    name: str
    trains: str
    """One of `TRAINED`."""
    low_bits: bool
    """Whether the frozen weights of the linear layers are stored in 4 bits."""
    decomposed: bool
    """Whether each output of an adapted weight has a trained magnitude (DoRA)."""
    pairs: bool
    """Whether an example is a pair of answers that a frozen reference model also scores (DPO)."""
    evidence: Evidence

    @property
    def adapts(self) -> bool:
        """Whether adapters are trained."""
        return self.trains == "adapters"

    @property
    def fine_tunes(self) -> bool:
        """Whether it starts from a trained model."""
        return self.id != PRETRAIN

    @property
    def sequences_per_example(self) -> int:
        """Number of sequences per training example: two for a pair of answers."""
        return 2 if self.pairs else 1


PRETRAIN = "pretrain"
"""The default method, which starts from random weights."""


def _method(row: Row) -> Method:
    return Method(
        id=row.text("id"),
        name=row.text("name"),
        trains=row.choice("trains", TRAINED),
        low_bits=row.flag("low_bits"),
        decomposed=row.flag("decomposed"),
        pairs=row.flag("pairs"),
        evidence=Evidence(
            id=f"method:{row.text('id')}",
            kind=EvidenceKind.PUBLISHED,
            what=f"{row.text('name')}: {row.text('what')}",
            source=row.text("source"),
            date=row.text("date"),
            public=True,
        ),
    )


METHOD_ROWS = Catalogue(CATALOG / "methods.csv", _method, what="training method")


def load_methods() -> dict[str, Method]:
    """All methods by id, in the order of the file.

    Raises:
        InputFileError: a row of the catalogue is wrong.
    """
    return METHOD_ROWS.by_id


@cache
def find_method(name: str) -> Method:
    """Find a method by name or alias (`full`, `QLoRA`), ignoring case and punctuation.

    Raises:
        UsageError: no such method; similar names are offered.
    """
    return METHOD_ROWS.find(name)
