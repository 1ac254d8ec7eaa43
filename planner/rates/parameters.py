"""The physical parameters of the model: value, 90 % range, meaning and source of each. Rows: `catalog/parameters.csv`.

Parameters with a qualifier (`fusion.eager`) hold for one stack or architecture. They are shared by all runs: none is
keyed on a model, a source or a run.
"""

from __future__ import annotations

import csv
import math
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from planner.evidence import EvidenceKind
from planner.rows import CATALOG

Z90 = 1.6449
"""Normal quantile of a 90 % two-sided range."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    """One number that the equations rest on."""

    id: str
    value: float
    low: float
    """5th percentile."""
    high: float
    """95th percentile."""
    unit: str
    meaning: str
    kind: EvidenceKind
    source: str
    date: str

    @property
    def log_sd(self) -> float:
        """Standard deviation of the logarithm, from the ratio of the ends of the range; 0 where the value is 0.

        Where the low end is 0 the upper half alone sets it.
        """
        if self.value <= 0 or self.high <= self.low:
            return 0.0
        if self.low <= 0:
            return math.log(self.high / self.value) / Z90
        return math.log(self.high / self.low) / (2 * Z90)


@cache
def load_parameters() -> dict[str, Parameter]:
    """All rows of the catalogue by id."""
    return read_parameters(CATALOG / "parameters.csv")


def read_parameters(path: Path) -> dict[str, Parameter]:
    """All rows of a file by id."""
    with path.open(encoding="utf-8", newline="") as lines:
        return {
            row["id"]: Parameter(
                id=row["id"],
                value=float(row["value"]),
                low=float(row["low"]),
                high=float(row["high"]),
                unit=row["unit"],
                meaning=row["meaning"],
                kind=EvidenceKind(row["kind"]),
                source=row["source"],
                date=row["date"],
            )
            for row in csv.DictReader(lines)
        }


def parameter(name: str, *qualifiers: str) -> Parameter:
    """The most specific row: `name.q1.q2`, then `name.q1`, `name.q2`, then `name`.

    Raises:
        KeyError: no such row (a mistake of ours).
    """
    rows = load_parameters()
    candidates = [".".join((name, *qualifiers)), *(f"{name}.{q}" for q in qualifiers), name]
    for candidate in candidates:
        if candidate in rows:
            return rows[candidate]
    raise KeyError(f"no parameter {name} for {qualifiers}")
