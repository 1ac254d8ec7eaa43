"""How whole runs that were published stand to the range predicted for them: `catalog/run_totals.csv`.

`make accuracy` writes the row anew from the parameters that were fitted without each run's own lineage.
"""

from __future__ import annotations

from dataclasses import dataclass

from planner.rows import CATALOG, read_rows

COLUMNS = ("runs", "lineages", "below_high", "source", "date")


@dataclass(frozen=True, slots=True, kw_only=True)
class RunTotals:
    """What supports a statement on the high figure of a run."""

    runs: int
    """Whole runs (GPU-hours or time to train) that were published and predicted without their lineage."""
    lineages: int
    """Teams that they come from."""
    below_high: int
    """Runs that took no more than the high predicted for them."""
    date: str
    """ISO date of the prediction."""


def load_run_totals() -> RunTotals:
    """The row of the catalogue.

    Raises:
        InputFileError: it is wrong.
    """
    (row,) = read_rows(CATALOG / "run_totals.csv", COLUMNS)
    return RunTotals(
        runs=row.integer("runs"),
        lineages=row.integer("lineages"),
        below_high=row.integer("below_high"),
        date=row.text("date"),
    )
