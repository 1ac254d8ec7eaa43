"""The result of a verification as a document, from the lines of a record."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from planner.records.measurement import Measurement
from probes.timing.statistics import Z95

SCHEMA = "mpplan.verify/1"
METRICS = ("time", "memory", "energy")
TARGETS_RATIO = {"cuda": {"time": 0.05, "memory": 0.03, "energy": 0.07}, "cpu": {"time": 0.08, "memory": 0.03}}
"""Largest median error that counts as a success, on a quiet machine."""

RANKS_TARGETS_RATIO = {"time": 0.20}
"""Largest median error that counts as a success for steps over several ranks."""

Case = dict[str, Any]


DISTURBED_ANCHORS = "predicted from small steps that were measured while something else ran"
"""Reason of a case whose error cannot be blamed on the prediction."""


def is_disturbed(point: Measurement) -> bool:
    """Return whether a point was measured while something else ran, or while the device throttled itself."""
    return point.sampling.quality not in (None, "ok")


def verify_cases(measurements: Iterable[Measurement]) -> list[Case]:
    """Return one entry per target and metric that was both predicted and measured."""
    cases: list[Case] = []
    for point in measurements:
        if point.kind != "verify" or point.status != "ok":
            continue
        pairs = {
            "time": (point.predicted.time_s, point.time.median_s),
            "memory": (point.predicted.memory_bytes, point.memory.allocated_peak_bytes),
            "energy": (point.predicted.energy_j, point.energy.j_per_iteration),
        }
        for metric in METRICS:
            predicted, measured = pairs[metric]
            if predicted is not None and measured:
                cases.append(_case(point, metric, predicted, measured))
    return cases


def verify_document(measurements: Iterable[Measurement]) -> dict[str, Any]:
    """Return the `mpplan.verify/1` document (docs/probing.md): `error_ratio` is predicted over measured, minus 1.

    `summary` covers all cases; `summary_quiet` leaves out those that were predicted or run while the machine had other
    load.
    """
    points = tuple(measurements)
    cases = verify_cases(points)
    failed = [point for point in points if point.kind == "verify" and point.status != "ok"]
    return {
        "schema": SCHEMA,
        "cases": cases,
        "summary": {metric: summary_of(cases, metric) for metric in METRICS},
        "summary_quiet": {metric: summary_of(_undisturbed(cases), metric) for metric in METRICS},
        "targets": _targets(points),
        "contended": sorted({case["name"] for case in cases if case["quality"] != "ok"}),
        "not_run": [{"name": _name(point), "status": point.status, "reason": point.reason} for point in failed],
    }


def _targets(points: Sequence[Measurement]) -> dict[str, float]:
    if any(point.kind == "verify" and point.communication.world for point in points):
        return RANKS_TARGETS_RATIO
    return TARGETS_RATIO.get(points[0].device.kind, {}) if points else {}


def summary_of(cases: Iterable[Case], metric: str) -> dict[str, Any]:
    """Return the number, median and largest of one metric's absolute errors; the errors are None without a case."""
    errors = [abs(case["error_ratio"]) for case in cases if case["metric"] == metric]
    return {
        "n": len(errors),
        "median_abs_error": float(np.median(errors)) if errors else None,
        "max_abs_error": max(errors, default=None),
    }


def _case(point: Measurement, metric: str, predicted: float, measured: float) -> Case:
    return {
        "name": _name(point),
        "precision": point.setup.precision,
        "recipe": point.setup.recipe,
        "metric": metric,
        "unit": {"time": "s", "memory": "bytes", "energy": "J"}[metric],
        "predicted": predicted,
        "measured": measured,
        "measured_interval_ratio": _interval_ratio(point) if metric == "time" else None,
        "error_ratio": predicted / measured - 1.0,
        "quality": "ok"
        if metric == "memory"
        else "contended"
        if point.reason == DISTURBED_ANCHORS
        else point.sampling.quality,
    }


def _interval_ratio(point: Measurement) -> float | None:
    """Return half the 95 % interval of a measured time over its median: a smaller error is not significant."""
    sd = point.sampled_relative_sd
    return None if sd is None else Z95 * sd


def _undisturbed(cases: Iterable[Case]) -> list[Case]:
    return [case for case in cases if case["quality"] in (None, "ok")]


def _name(point: Measurement) -> str:
    return point.probe_id.removeprefix("verify/")
