"""The part of the page on lineages: left out whole, after learning from their own runs, and how far two are apart."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations
from typing import Any

import numpy as np

from planner.rates.ladder import shape_key
from planner.validation.score import ScoredRun

FIGURES = {"time": "throughput", "memory": "memory", "power": "power", "run": "run totals and their energy"}
ENOUGH = 3
"""Rows that a lineage on the learning curve has to have learned from."""
HEADERS = ("", "lineages", "error: mean", "error: median", "in the range", "width of the range")

Entry = Mapping[str, Any]
"""A lineage, figure and count of learned rows of `benchmarks/calibration.json`."""


def _percent(value: float, digits: int = 1) -> str:
    return f"{100 * value:.{digits}f} %"


def votes(entries: Sequence[Entry]) -> tuple[str, ...]:
    """One vote a lineage: number, mean and median error, coverage, width."""
    errors, inside, widths = (np.array([entry[name] for entry in entries]) for name in ("error", "coverage", "width"))
    return (
        str(len(entries)), _percent(float(errors.mean())), _percent(float(np.median(errors))),
        _percent(float(inside.mean()), 0), _percent(float(np.median(widths)), 0),
    )  # fmt: skip


def left_out_rows(report: Entry) -> list[tuple[str, ...]]:
    """Lineages left out whole with nothing learned, every draw through the equations, by figure."""
    groups = _by(report["drawn"], "figure")
    return [(label, *votes(groups[name])) for name, label in FIGURES.items() if name in groups]


def lineage_rows(report: Entry) -> list[tuple[str, ...]]:
    """The same of every lineage with two rows or more."""
    rows: list[tuple[str, ...]] = []
    for name, label in FIGURES.items():
        entries = [entry for entry in report["drawn"] if entry["figure"] == name and entry["rows"] > 1]
        for entry in sorted(entries, key=lambda entry: -entry["rows"]):
            rows.append((
                entry["lineage"], label, str(entry["rows"]), _percent(entry["error"]), _percent(entry["coverage"], 0),
                _percent(entry["width"], 0),
            ))  # fmt: skip
    return rows


def curve_rows(report: Entry) -> list[tuple[str, ...]]:
    """The learning curve of the lineages that have enough rows to learn from three."""
    rows: list[tuple[str, ...]] = []
    for name, label in FIGURES.items():
        entries = [entry for entry in report["curve"] if entry["figure"] == name]
        able = {entry["lineage"] for entry in entries if entry["learned"] == ENOUGH}
        for count, members in sorted(_by(entries, "learned").items()):
            voters = [entry for entry in members if entry["lineage"] in able]
            rows += [(f"{label}, {count} learned", *votes(voters))] if voters else []
    return rows


def _by(entries: Iterable[Entry], name: str) -> dict[Any, list[Entry]]:
    groups: dict[Any, list[Entry]] = defaultdict(list)
    for entry in entries:
        groups[entry[name]].append(entry)
    return groups


def apart(runs: Iterable[ScoredRun]) -> list[float]:
    """How far two lineages are apart on one question: absolute logarithm of the ratio of their speeds, for each pair.

    One question is one model (by its shape), GPU, precision, number of GPUs, sequence length and kind of training; the
    speed is tokens per second and GPU, the median of a lineage's rows.
    """
    speeds: dict[tuple[object, ...], dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for row in runs:
        if row.counts and row.run is not None and row.prepared is not None and row.published:
            speed = _tokens_per_s_per_gpu(row)
            if speed is not None:
                prepared = row.prepared
                key = (
                    shape_key(prepared.recipe.model), prepared.cluster.gpu.id, prepared.recipe.policy.precision,
                    row.run.n_gpus, row.run.seq_len, prepared.recipe.method,
                )  # fmt: skip
                speeds[key][row.run.lineage].append(speed)
    return [
        float(abs(np.log(np.median(lineages[first]) / np.median(lineages[second]))))
        for lineages in speeds.values()
        for first, second in combinations(sorted(lineages), 2)
    ]


def _tokens_per_s_per_gpu(row: ScoredRun) -> float | None:
    assert row.prepared is not None
    assert row.published is not None
    prepared, gpus = row.prepared, int(row.prepared.layouts.gpus[0])
    tokens = prepared.recipe.tokens_per_step * prepared.batch_scale / gpus
    if row.metric == "tokens_per_s_per_gpu":
        return row.published
    if row.metric == "step_time_s":
        return tokens / row.published
    if row.metric == "samples_per_s":
        return row.published * prepared.recipe.seq_len / gpus
    return None


def floor_text(runs: Iterable[ScoredRun]) -> str:
    """How far apart two lineages are, and what that means for a planner that knows nothing of the team, in words."""
    distances = apart(runs)
    if not distances:
        return "No two lineages report one question."
    typical = float(np.expm1(np.median(distances)))
    # The best answer to both stands between them: each is half of their distance away.
    best = float(np.expm1(np.median(distances) / 2.0))
    return (
        f"On {len(distances)} pairs two lineages report one question (model, GPU, precision, GPUs, sequence): they are "
        f"{_percent(typical)} apart at the median, releases and layouts included. A planner that stands right between "
        f"them misses both by {_percent(best)}; one that knows nothing of the team can come nearer to one of them only "
        f"by missing the other by more."
    )
