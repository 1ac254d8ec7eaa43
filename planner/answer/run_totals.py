"""How published whole runs compare with the range predicted for them.

`make accuracy` rewrites `catalog/run_totals.csv` from parameters that were fitted without each run's own lineage, and
`make checked` rewrites `catalog/asked_totals.csv` from well-known runs asked without their team's setup.
"""

from __future__ import annotations

from planner.lazy import dataclass
from planner.rows import CATALOG, read_rows

COLUMNS = ("runs", "lineages", "below_high", "source", "date")
ASKED_COLUMNS = ("runs", "inside", "below_high", "source", "date")


@dataclass(frozen=True, slots=True, kw_only=True)
class RunTotals:
    """The published runs that support a statement about the high end of a run."""

    runs: int
    """Number of published whole runs (GPU-hours or time to train) that were predicted without their lineage."""
    lineages: int
    """Number of teams that these runs come from."""
    below_high: int
    """Number of runs that took no more than the high end predicted for them."""
    date: str
    """ISO date of the prediction."""
    asked_runs: int = 0
    """Number of well-known runs that were predicted from the model, the GPUs and the tokens alone."""
    asked_below_high: int = 0
    """Number of those well-known runs that took no more than the high end predicted for them."""


def load_run_totals() -> RunTotals:
    """Read the counts from the catalogue.

    Raises:
        InputFileError: a row is wrong.
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
