"""Calibrate on the shipped published runs and write the parameters down: `make calibrate`.

`python -m tools.calibrate [time] [memory] [power]`; all three by default. Writes `planner/catalog/parameters.csv` and
`benchmarks/calibration.json`.
"""

from __future__ import annotations

import csv
import json
import sys
from pathlib import Path

from planner.calibration.run import KINDS, PARAMETERS, calibrate
from planner.rates.parameters import Parameter, Parameters

REPORT = Path(__file__).resolve().parents[1] / "benchmarks" / "calibration.json"


def write_parameters(parameters: Parameters) -> None:
    """Write the rows family by family; what the first row of a family declares stays as it is in the file."""
    with PARAMETERS.open(encoding="utf-8", newline="") as lines:
        table = csv.DictReader(lines)
        columns, before = list(table.fieldnames or ()), {row["id"]: row for row in table}
    order = list(parameters.families)
    with PARAMETERS.open("w", encoding="utf-8", newline="") as out:
        writer = csv.DictWriter(out, columns, restval="", lineterminator="\n")
        writer.writeheader()
        for row in sorted(parameters.rows.values(), key=lambda row: order.index(row.family)):
            writer.writerow(before.get(row.id, {}) | _cells(row))


def _cells(row: Parameter) -> dict[str, str]:
    prior = ("", "", "") if row.prior is None else tuple(f"{figure:g}" for figure in row.prior)
    return {
        "id": row.id, "meaning": row.meaning, "value": f"{row.value:.4g}", "low": f"{row.low:.4g}",
        "high": f"{row.high:.4g}", "prior": prior[0], "prior_low": prior[1], "prior_high": prior[2], "unit": row.unit,
        "kind": row.kind.value, "source": row.source, "date": row.date,
        "fitted_rows": "" if row.fitted_rows is None else str(row.fitted_rows),
    }  # fmt: skip


def main() -> None:
    """Calibrate the kinds named on the command line, then write."""
    kinds = [name for name in sys.argv[1:] if name in KINDS] or list(KINDS)
    earlier = json.loads(REPORT.read_text(encoding="utf-8")) if REPORT.exists() else {}
    calibration = calibrate(kinds, earlier, lambda line: sys.stdout.write(line + "\n"))
    write_parameters(calibration.parameters)
    REPORT.write_text(json.dumps(calibration.report, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
