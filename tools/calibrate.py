"""Calibrate on the shipped published runs and write the parameters down: `make calibrate`.

`python -m tools.calibrate [time] [memory] [power]`; all three by default. Writes `planner/catalog/parameters.csv` and
`benchmarks/calibration.json`.
"""

from __future__ import annotations

import csv
import json
import sys
from collections.abc import Mapping
from pathlib import Path

from planner.calibration.run import KINDS, PARAMETERS, calibrate
from planner.rates.parameters import Parameter

REPORT = Path(__file__).resolve().parents[1] / "benchmarks" / "calibration.json"


def write_parameters(parameters: Mapping[str, Parameter]) -> None:
    """Write the catalogue's rows in the given order."""
    with PARAMETERS.open("w", encoding="utf-8", newline="") as out:
        table = csv.writer(out, lineterminator="\n")
        table.writerow(["id", "value", "low", "high", "unit", "meaning", "kind", "source", "date"])
        for row in parameters.values():
            figures = [f"{x:.4g}" for x in (row.value, row.low, row.high)]
            table.writerow([row.id, *figures, row.unit, row.meaning, row.kind.value, row.source, row.date])


def main() -> None:
    """Calibrate the kinds named on the command line, then write."""
    kinds = [name for name in sys.argv[1:] if name in KINDS] or list(KINDS)
    earlier = json.loads(REPORT.read_text(encoding="utf-8")) if REPORT.exists() else {}
    calibration = calibrate(kinds, earlier, lambda line: sys.stdout.write(line + "\n"))
    write_parameters(calibration.parameters)
    REPORT.write_text(json.dumps(calibration.report, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
