"""Time of learning from 20 own runs, as a ratio to predicting the same 20 rows: `python -m benchmarks.calibrate`."""

from __future__ import annotations

import csv
import sys
import time
from collections.abc import Callable

from mpplan.api.calibrations import calibration_of
from planner.rows import CATALOG
from planner.validation.validate import validate

ROWS = 20
LINEAGE = "mosaic"
REPEATS = 5


def best_s(work: Callable[[], object]) -> float:
    """Return the seconds of the fastest of a few runs."""
    times = []
    for _ in range(REPEATS):
        started = time.perf_counter()
        work()
        times.append(time.perf_counter() - started)
    return min(times)


def main() -> None:
    """Time both in one process, and print the ratio."""
    with (CATALOG / "published_runs.csv").open(encoding="utf-8", newline="") as lines:
        rows = [row for row in csv.DictReader(lines) if row["lineage"] == LINEAGE and row["value"]][:ROWS]
    validate(rows)  # fill the caches that both use
    predicting, learning = best_s(lambda: validate(rows)), best_s(lambda: calibration_of(rows, source="runs.csv"))
    sys.stdout.write(
        f"{len(rows)} rows: predicted in {predicting:.2f} s, learned from in {learning:.2f} s, "
        f"ratio {learning / predicting:.2f}\n"
    )


if __name__ == "__main__":
    main()
