"""How whole runs that were published stand to the range predicted for them.

`make accuracy` writes `catalog/run_totals.csv` anew from the parameters that were fitted without each run's own
lineage, and `make checked` writes `catalog/asked_totals.csv` from well-known runs asked without their team's setup.
"""

from __future__ import annotations

from planner.lazy import dataclass
from planner.rows import CATALOG, read_rows

COLUMNS = ("runs", "lineages", "below_high", "source", "date")
ASKED_COLUMNS = ("runs", "inside", "below_high", "source", "date")


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
    asked_runs: int = 0
    """Well-known runs that were asked with the model, the GPUs and the tokens alone."""
    asked_below_high: int = 0
    """Those of them that took no more than the high predicted for them."""


def load_run_totals() -> RunTotals:
    """The rows of the catalogue.

    Raises:
        InputFileError: one is wrong.
    """
    (asked,) = read_rows(CATALOG / "asked_totals.csv", ASKED_COLUMNS)
    (row,) = read_rows(CATALOG / "run_totals.csv", COLUMNS)
    return RunTotals(
        runs=row.integer("runs"),
        lineages=row.integer("lineages"),
        below_high=row.integer("below_high"),
        date=row.text("date"),
        asked_runs=asked.integer("runs"),
        asked_below_high=asked.integer("below_high"),
    )
