"""Claims that one GPU can test, with the measured value beside the claimed one, from a record alone.

python benchmarks/h200/measure_claims.py RECORD.jsonl [OUT.json]
"""

from __future__ import annotations

import csv
import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from planner.records.jsonl import read_measurements
from planner.records.measurement import Measurement

Points = Sequence[Measurement]
Found = list[dict[str, Any]]


def _steps(points: Points, model: str = "") -> dict[tuple[Any, ...], dict[str, Measurement]]:
    """Whole steps by case, then by recipe."""
    cases: dict[tuple[Any, ...], dict[str, Measurement]] = {}
    for point in points:
        if point.kind == "end_to_end" and point.usable_time and model in (point.shape.model or ""):
            case = (
                point.shape.model,
                point.shape.layers,
                point.shape.seq_len,
                point.shape.micro_batch,
                point.setup.recompute,
                point.setup.compiled,
            )
            cases.setdefault(case, {})[point.setup.recipe or ""] = point
    return cases


def _pairs(points: Points, base: str, others: Sequence[str], value: Callable[[Measurement, Measurement], float | None],
           model: str = "") -> Found:  # fmt: skip
    """`value(base, other)` for every case that holds both recipes."""
    cases = []
    for case, recipes in _steps(points, model).items():
        for name in others:
            if base in recipes and name in recipes and (ratio := value(recipes[base], recipes[name])) is not None:
                cases.append({"case": f"{case[0]}, {case[1]} layers, {name} against {base}", "measured": ratio})
    return cases


def _speed(a: Measurement, b: Measurement) -> float | None:
    return (a.time.median_s or 0.0) / b.time.median_s if b.time.median_s else None


def _time_saved(a: Measurement, b: Measurement) -> float | None:
    return 1.0 - (b.time.median_s or 0.0) / a.time.median_s if a.time.median_s else None


def _memory_saved(a: Measurement, b: Measurement) -> float | None:
    x, y = a.memory.allocated_peak_bytes, b.memory.allocated_peak_bytes
    return 1.0 - y / x if x and y else None


def _energy_saved(a: Measurement, b: Measurement) -> float | None:
    x, y = a.energy.j_per_iteration, b.energy.j_per_iteration
    return 1.0 - y / x if x and y else None


def _product_speed(points: Points, base: str, others: Sequence[str]) -> Found:
    by_shape: dict[str, dict[str, Measurement]] = {}
    for point in points:
        if point.kind == "gemm" and point.usable_time and point.setup.role == "forward":
            by_shape.setdefault(f"{point.shape.gemm_m}x{point.shape.gemm_n}x{point.shape.gemm_k}", {})[
                point.setup.recipe or ""
            ] = point
    return [
        {"case": f"{shape}, {name} against {base}", "measured": _speed(recipes[base], recipes[name])}
        for shape, recipes in by_shape.items()
        for name in others
        if base in recipes and name in recipes
    ]


def _checkpointing(points: Points, value: Callable[[Measurement, Measurement], float | None]) -> Found:
    """Layer stacks with and without recomputation, otherwise alike."""
    blocks = [point for point in points if point.kind == "block" and point.usable_time]
    plain = {(point.shape, point.setup): point for point in blocks if point.setup.recompute == "none"}
    cases = []
    for point in blocks:
        twin = plain.get((point.shape, replace(point.setup, recompute="none")))
        if point.setup.recompute == "full" and twin is not None and (ratio := value(twin, point)) is not None:
            cases.append({"case": point.probe_id, "measured": ratio})
    return cases


def _activations_saved(plain: Measurement, recomputed: Measurement) -> float | None:
    sizes = [
        (point.memory.allocated_peak_bytes or 0.0) - (point.memory.persistent_bytes or 0.0)
        for point in (plain, recomputed)
    ]
    return 1.0 - sizes[1] / sizes[0] if sizes[0] > 0 else None


def _time_added(plain: Measurement, recomputed: Measurement) -> float | None:
    return (recomputed.time.median_s or 0.0) / plain.time.median_s - 1.0 if plain.time.median_s else None


def _states(points: Points) -> Found:
    return [
        {"case": point.setup.optimizer, "measured": point.memory.optimizer_state_bytes_per_param}
        for point in points
        if point.kind == "optimizer" and point.memory.optimizer_state_bytes_per_param is not None
    ]


MIXED = ("fp16", "bf16-autocast", "bf16-fsdp", "fp8")
HOW: dict[str, Callable[[Points], Found]] = {
    "c01": lambda p: _pairs(p, "fp32", MIXED, _memory_saved) + _pairs(p, "tf32", MIXED, _memory_saved),
    "c05": lambda p: _pairs(p, "tf32", MIXED, _memory_saved, "bert"),
    "c06": lambda p: _pairs(p, "tf32", MIXED, _speed) + _pairs(p, "fp32", MIXED, _speed),
    "c07": lambda p: _pairs(p, "tf32", MIXED, _time_saved, "bert"),
    "c09": lambda p: _product_speed(p, "fp32", ("fp16",)),
    "c10": lambda p: _pairs(p, "fp32", ("tf32",), _speed),
    "c11": lambda p: _pairs(p, "bf16-fsdp", ("fp8",), _speed) + _product_speed(p, "bf16-autocast", ("fp8",)),
    "c13": lambda p: _pairs(p, "tf32", MIXED, _energy_saved) + _pairs(p, "fp32", MIXED, _energy_saved),
    "c18": lambda p: _checkpointing(p, _activations_saved),
    "c19": lambda p: _checkpointing(p, _time_added),
    "c23": lambda p: _pairs(p, "fp32", MIXED, _speed),
    "c32": _states,
}
"""Claim to how it is measured."""


def judge(record: Path) -> Found:
    """Each claim with its measured values; an empty list where the record has none."""
    points = read_measurements(record).latest()
    with (Path(__file__).parent / "claims.csv").open(encoding="utf-8", newline="") as lines:
        rows = list(csv.DictReader(lines))
    return [row | {"measured": HOW[row["id"]](points)} for row in rows]


if __name__ == "__main__":
    result = judge(Path(sys.argv[1]))
    if len(sys.argv) > 2:
        Path(sys.argv[2]).write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    for claim in result:
        values = [point["measured"] for point in claim["measured"]]
        span = f"{min(values):.2f} to {max(values):.2f}" if values else "not measured"
        claimed = f"claimed {claim['low']} to {claim['high']} {claim['unit']}"
        sys.stdout.write(f"{claim['id']} {claim['claim']}: {claimed}, measured {span}\n")
