"""The range of magnitudes of number formats: rows of `catalog/number_formats.csv`."""

from __future__ import annotations

import math

from planner.lazy import dataclass
from planner.rows import CATALOG, Catalogue, Row


@dataclass(frozen=True, slots=True, kw_only=True)
class NumberFormat:
    """The range of one format, without a scale."""

    id: str
    """Name in `mpplan numerics`: `fp16`, `bf16`, `e5m2`, `e4m3` or `e2m1`."""
    label: str
    least_log2: float
    """Base-2 logarithm of the smallest positive number, including subnormal numbers."""
    most: float
    """Largest finite number."""
    source: str
    date: str

    @property
    def most_log2(self) -> float:
        """Base-2 logarithm of the largest finite number."""
        return math.log2(self.most)


def _row(row: Row) -> NumberFormat:
    return NumberFormat(
        id=row.text("id"),
        label=row.text("label"),
        least_log2=row.number("least_log2", low=-1074, high=0),
        most=row.number("most", low=1.0),
        source=row.text("source"),
        date=row.text("date"),
    )


FORMATS = Catalogue(CATALOG / "number_formats.csv", _row)


def load_number_formats() -> dict[str, NumberFormat]:
    """All rows by id.

    Raises:
        InputFileError: a row of the catalogue is wrong.
    """
    return FORMATS.by_id
