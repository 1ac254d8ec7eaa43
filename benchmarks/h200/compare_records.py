"""Check whether two records of one device agree within their own confidence intervals.

    python benchmarks/h200/compare_records.py FIRST.jsonl SECOND.jsonl [OUT.json]

Two medians agree if their difference is within the two intervals combined in quadrature, plus 1% (session
repeatability).
"""

from __future__ import annotations

import json
import math
import sys
from pathlib import Path
from typing import Any

import numpy as np

from planner.records.jsonl import read_measurements
from planner.records.measurement import Measurement

REPEATABILITY_RATIO = 0.01


def compare(first: Path, second: Path) -> dict[str, Any]:
    """Compare every point that has a time in both records."""
    ours, theirs = _timed(first), _timed(second)
    rows = [_row(ours[name], theirs[name]) for name in ours if name in theirs]
    rows.sort(key=lambda row: -abs(row["difference_ratio"]))
    differences = [abs(row["difference_ratio"]) for row in rows]
    return {
        "points": len(rows),
        "agree": sum(row["agree"] for row in rows),
        "median_abs_difference_ratio": float(np.median(differences)) if rows else None,
        "p95_abs_difference_ratio": float(np.quantile(differences, 0.95)) if rows else None,
        "only_in_first": sorted(set(ours) - set(theirs)),
        "only_in_second": sorted(set(theirs) - set(ours)),
        "largest": rows[:20],
    }


def _timed(path: Path) -> dict[str, Measurement]:
    return {
        point.probe_id: point
        for point in read_measurements(path).latest()
        if point.usable_time and point.kind != "canary"
    }


def _row(first: Measurement, second: Measurement) -> dict[str, Any]:
    a, b = first.time.median_s or 0.0, second.time.median_s or 0.0
    difference = b / a - 1.0
    allowed = math.hypot(_half(first), _half(second)) + REPEATABILITY_RATIO
    return {
        "probe_id": first.probe_id,
        "first_s": a,
        "second_s": b,
        "difference_ratio": difference,
        "allowed_ratio": allowed,
        "agree": abs(difference) <= allowed,
        "quality": [first.sampling.quality, second.sampling.quality],
    }


def _half(first: Measurement) -> float:
    """Return half the 95% interval over the median."""
    return 1.96 * (first.time_relative_sd or 0.0)


if __name__ == "__main__":
    result = compare(Path(sys.argv[1]), Path(sys.argv[2]))
    text = json.dumps(result, indent=1)
    if len(sys.argv) > 3:
        Path(sys.argv[3]).write_text(text + "\n", encoding="utf-8")
    sys.stdout.write(text[:1500] + "\n")
