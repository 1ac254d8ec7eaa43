"""Fit the shipped parameters to the shipped published runs, and write the results: `make calibrate`.

Writes `planner/catalog/parameters.csv`, `planner/catalog/posterior.csv` and `benchmarks/calibration.json`. With
`--judge`, the parameters stay unchanged and only the errors of held-out lineages are computed again.
"""

from __future__ import annotations

import argparse
import csv
import json
import sys
from pathlib import Path
from typing import Any

from planner.calibration.crossval import Learned
from planner.calibration.fit import Fit, fit, judge, read_corpus
from planner.rates.parameters import PARAMETERS, POSTERIOR, Joint, Parameter, Parameters, shipped_parameters
from planner.units import today

REPORT = Path(__file__).resolve().parents[1] / "benchmarks" / "calibration.json"


def write_parameters(parameters: Parameters) -> None:
    """Write the rows family by family; the declarations in the first row of a family are kept from the file."""
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
        "lineage_sd": "" if row.lineage_sd is None else f"{row.lineage_sd:.3g}",
    }  # fmt: skip


def write_posterior(joint: Joint) -> None:
    """Write the lower triangular factor of the covariance, one row per parameter."""
    with POSTERIOR.open("w", encoding="utf-8", newline="") as out:
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow(["id", "factor"])
        for number, (name, row) in enumerate(zip(joint.ids, joint.factor, strict=True)):
            writer.writerow([name, " ".join(f"{entry:.3g}" for entry in row[: number + 1])])


def write_report(result: Fit, date: str) -> None:
    """Write the errors of held-out lineages, with the date of the fit."""
    REPORT.write_text(json.dumps(report_of(result, date), indent=1) + "\n", encoding="utf-8")


def report_of(result: Fit, date: str) -> dict[str, Any]:
    """Return the date of the fit, learning curves by figure and lineage, and each row's held-out residual."""
    return {
        "date": date,
        "curve": [_entry(entry) for entry in result.curve],
        "drawn": [_entry(entry) for entry in result.drawn],
        "left_out": {name: [round(value, 4) for value in pair] for name, pair in result.left_out.items()},
    }


def _entry(entry: Learned) -> dict[str, Any]:
    figures = {"error": entry.error, "coverage": entry.coverage, "width": entry.width}
    rounded = {name: round(value, 4) for name, value in figures.items()}
    return {
        "figure": entry.figure.value, "lineage": entry.lineage, "rows": entry.rows, "learned": entry.count
    } | rounded  # fmt: skip


def main() -> None:
    """Calibrate, then write the files."""
    command = argparse.ArgumentParser(prog="python -m tools.calibrate", description="Fit the shipped parameters.")
    command.add_argument("--judge", action="store_true", help="only compute the errors of held-out lineages again")
    shipped, only_judges = shipped_parameters(), command.parse_args().judge
    if only_judges:
        write_report(judge(read_corpus(shipped), shipped), json.loads(REPORT.read_text(encoding="utf-8"))["date"])
        return
    result = fit(read_corpus(shipped), shipped, lambda line: sys.stdout.write(line + "\n"))
    assert result.parameters.joint is not None
    write_parameters(result.parameters)
    write_posterior(result.parameters.joint)
    write_report(result, today().isoformat())


if __name__ == "__main__":
    main()
