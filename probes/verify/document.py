"""The result of a verification as a document, from the lines of a record."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from planner.records.measurement import Measurement

SCHEMA = "mpplan.verify/1"
METRICS = ("time", "memory", "energy")
TARGETS_RATIO = {"cuda": {"time": 0.05, "memory": 0.03, "energy": 0.07}, "cpu": {"time": 0.10, "memory": 0.03}}
"""Largest median error that is called a success, on a quiet machine."""

Case = dict[str, Any]


LOUD_ANCHORS = "predicted from small steps that were measured while something else ran"
"""Reason of a case whose prediction cannot be blamed."""


def is_loud(one: Measurement) -> bool:
    """Whether a point was measured while something else ran, or while the device slowed itself down."""
    return one.sampling.quality not in (None, "ok")


def verify_cases(measurements: Iterable[Measurement]) -> list[Case]:
    """One entry per target and metric that was both predicted and measured."""
    cases: list[Case] = []
    for one in measurements:
        if one.kind != "verify" or one.status != "ok":
            continue
        pairs = {
            "time": (one.predicted.time_s, one.time.median_s),
            "memory": (one.predicted.memory_bytes, one.memory.allocated_peak_bytes),
            "energy": (one.predicted.energy_j, one.energy.j_per_iteration),
        }
        for metric in METRICS:
            predicted, measured = pairs[metric]
            if predicted is not None and measured:
                cases.append(_case(one, metric, predicted, measured))
    return cases


def verify_document(measurements: Iterable[Measurement]) -> dict[str, Any]:
    """The document of the design, section 4: `error_ratio` is predicted over measured less 1.

    Beside `summary` over all cases, `summary_quiet` leaves out those that were predicted or run while the machine did
    something else.
    """
    points = tuple(measurements)
    cases = verify_cases(points)
    failed = [one for one in points if one.kind == "verify" and one.status != "ok"]
    return {
        "schema": SCHEMA,
        "cases": cases,
        "summary": {metric: summary_of(cases, metric) for metric in METRICS},
        "summary_quiet": {metric: summary_of(_quiet(cases), metric) for metric in METRICS},
        "targets": TARGETS_RATIO.get(points[0].device.kind, {}) if points else {},
        "contended": sorted({case["name"] for case in cases if case["quality"] != "ok"}),
        "not_run": [{"name": _name(one), "status": one.status, "reason": one.reason} for one in failed],
    }


def summary_of(cases: Iterable[Case], metric: str) -> dict[str, Any]:
    """Number, median and largest absolute error of one metric; None where there is no case."""
    errors = [abs(case["error_ratio"]) for case in cases if case["metric"] == metric]
    return {
        "n": len(errors),
        "median_abs_error": float(np.median(errors)) if errors else None,
        "max_abs_error": max(errors, default=None),
    }


def _case(one: Measurement, metric: str, predicted: float, measured: float) -> Case:
    return {
        "name": _name(one),
        "precision": one.setup.precision,
        "recipe": one.setup.recipe,
        "metric": metric,
        "unit": {"time": "s", "memory": "bytes", "energy": "J"}[metric],
        "predicted": predicted,
        "measured": measured,
        "error_ratio": predicted / measured - 1.0,
        "quality": "ok" if metric == "memory" else "contended" if one.reason == LOUD_ANCHORS else one.sampling.quality,
    }


def _quiet(cases: Iterable[Case]) -> list[Case]:
    return [case for case in cases if case["quality"] in (None, "ok")]


def _name(one: Measurement) -> str:
    return one.probe_id.removeprefix("verify/")
