"""Training methods: which weights learn, in how many bits the others lie, and what an example is.

Rows: `catalog/methods.csv`, each with its source.
"""

from __future__ import annotations

from functools import cache

from planner.evidence import Evidence, EvidenceKind
from planner.lazy import dataclass
from planner.rows import CATALOG, Catalogue, Row

TRAINED = ("all", "last-layers", "adapters")
"""Weights that get gradients: every one, those of the last layers, small matrices beside the frozen ones."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Method:
    """One way to train."""

    id: str
    """For example `pretrain`, `sft`, `qlora`."""
    name: str
    trains: str
    """One of `TRAINED`."""
    low_bits: bool
    """Whether the frozen weights of the linear layers lie in 4 bits."""
    decomposed: bool
    """Whether each output of an adapted weight has a trained magnitude (DoRA)."""
    pairs: bool
    """Whether an example is a pair of answers that a frozen reference scores as well (DPO)."""
    evidence: Evidence

    @property
    def adapts(self) -> bool:
        """Whether adapters are trained."""
        return self.trains == "adapters"

    @property
    def fine_tunes(self) -> bool:
        """Whether it begins with a trained model."""
        return self.id != PRETRAIN

    @property
    def sequences_per_example(self) -> int:
        """Sequences that the model is trained on for one example: two for a pair of answers."""
        return 2 if self.pairs else 1


PRETRAIN = "pretrain"
"""The method that begins with random weights: the default."""


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
    """The method of a name or alias (`full`, `QLoRA`), whatever its case and punctuation.

    Raises:
        UsageError: no such method; similar names are offered.
    """
    return METHOD_ROWS.find(name)
