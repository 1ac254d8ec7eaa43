"""The claims that one GPU can tell, measured value beside the claimed one, from a record alone.

python benchmarks/h200/measure_claims.py RECORD.jsonl [OUT.json]
"""

from __future__ import annotations

import csv
import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from planner.records.jsonl import read_measurements
from planner.records.measurement import Measurement

Points = Sequence[Measurement]
Found = list[dict[str, Any]]


def _steps(points: Points, model: str = "") -> dict[tuple[Any, ...], dict[str, Measurement]]:
    """Whole steps by case, then by recipe."""
    cases: dict[tuple[Any, ...], dict[str, Measurement]] = {}
    for one in points:
        if one.kind == "end_to_end" and one.usable_time and model in (one.shape.model or ""):
            case = (
                one.shape.model,
                one.shape.layers,
                one.shape.seq_len,
                one.shape.micro_batch,
                one.setup.recompute,
                one.setup.compiled,
            )
            cases.setdefault(case, {})[one.setup.recipe or ""] = one
    return cases


def _pairs(points: Points, base: str, others: Sequence[str], value: Callable[[Measurement, Measurement], float | None],
           model: str = "") -> Found:  # fmt: skip
    """`value(base, other)` for every case that holds both recipes."""
    found = []
    for case, recipes in _steps(points, model).items():
        for name in others:
            if base in recipes and name in recipes and (told := value(recipes[base], recipes[name])) is not None:
                found.append({"case": f"{case[0]}, {case[1]} layers, {name} against {base}", "measured": told})
    return found


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
    for one in points:
        if one.kind == "gemm" and one.usable_time and one.setup.role == "forward":
            by_shape.setdefault(f"{one.shape.gemm_m}x{one.shape.gemm_n}x{one.shape.gemm_k}", {})[
                one.setup.recipe or ""
            ] = one
    return [
        {"case": f"{shape}, {name} against {base}", "measured": _speed(recipes[base], recipes[name])}
        for shape, recipes in by_shape.items()
        for name in others
        if base in recipes and name in recipes
    ]


def _checkpointing(points: Points, value: Callable[[Measurement, Measurement], float | None]) -> Found:
    """Layer stacks with and without recomputation, otherwise alike."""
    blocks = {one.probe_id: one for one in points if one.kind == "block" and one.usable_time}
    found = []
    for name, one in blocks.items():
        plain = blocks.get(name.removesuffix("/recompute"))
        if one.setup.recompute == "full" and plain is not None and (told := value(plain, one)) is not None:
            found.append({"case": name, "measured": told})
    return found


def _activations_saved(plain: Measurement, recomputed: Measurement) -> float | None:
    sizes = [
        (one.memory.allocated_peak_bytes or 0.0) - (one.memory.persistent_bytes or 0.0) for one in (plain, recomputed)
    ]
    return 1.0 - sizes[1] / sizes[0] if sizes[0] > 0 else None


def _time_added(plain: Measurement, recomputed: Measurement) -> float | None:
    return (recomputed.time.median_s or 0.0) / plain.time.median_s - 1.0 if plain.time.median_s else None


def _states(points: Points) -> Found:
    return [
        {"case": one.setup.optimizer, "measured": one.memory.optimizer_state_bytes_per_param}
        for one in points
        if one.kind == "optimizer" and one.memory.optimizer_state_bytes_per_param is not None
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
    """Each claim with what the record says of it; an empty list where it says nothing."""
    points = read_measurements(record).latest()
    with (Path(__file__).parent / "claims.csv").open(encoding="utf-8", newline="") as lines:
        rows = list(csv.DictReader(lines))
    return [row | {"measured": HOW[row["id"]](points)} for row in rows]


if __name__ == "__main__":
    result = judge(Path(sys.argv[1]))
    if len(sys.argv) > 2:
        Path(sys.argv[2]).write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    for claim in result:
        said = [one["measured"] for one in claim["measured"]]
        span = f"{min(said):.2f} to {max(said):.2f}" if said else "not measured"
        claimed = f"claimed {claim['low']} to {claim['high']} {claim['unit']}"
        sys.stdout.write(f"{claim['id']} {claim['claim']}: {claimed}, measured {span}\n")
