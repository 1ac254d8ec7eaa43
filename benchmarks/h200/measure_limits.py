"""The limits from a hand-written loop, to check the probe's own rates, which should reach at least 95% of them.

    python benchmarks/h200/measure_limits.py OUT.json [--device cuda] [--record RECORD.jsonl]

It shares no code with the probe's clock or protocol: plain torch, events around many launches, random data, and the
median of rounds.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from planner.records.jsonl import read_measurements
from planner.units import TERA

SHAPES = {
    "cuda": ((8192, 8192, 8192), (8192, 7168, 8192), (8192, 4096, 14336), (8192, 28672, 4096)),
    "cpu": ((512, 512, 512), (1024, 1024, 1024)),
}
RECIPES = {
    "cuda": ("fp32", "tf32", "fp16", "bf16-autocast", "fp8", "fp8-rowwise"),
    "cpu": ("fp32", "bf16-autocast"),
}


def seconds_per_call(call: Callable[[int], object], kind: str, rounds: int = 7) -> float:
    """Return the median over rounds of enough launches to last about 50 ms each."""
    for i in range(5):
        call(i)
    once = _region(call, kind, 3)
    count = max(3, int(0.05 / max(once, 1e-7)))
    return statistics.median(_region(call, kind, count) for _ in range(rounds))


def _region(call: Callable[[int], object], kind: str, count: int) -> float:
    if kind == "cuda":
        torch.cuda.synchronize()
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        start.record()
        for i in range(count):
            call(i)
        end.record()
        torch.cuda.synchronize()
        return float(start.elapsed_time(end)) / 1e3 / count
    begun = time.perf_counter()
    for i in range(count):
        call(i)
    return (time.perf_counter() - begun) / count


def product(recipe: str, m: int, n: int, k: int, kind: str) -> Callable[[int], object]:
    """Return a function that computes `x @ w.T` on three rotating sets of random operands."""
    torch.set_float32_matmul_precision("high" if recipe == "tf32" else "highest")
    high = [(torch.randn(m, k, device=kind), torch.randn(n, k, device=kind)) for _ in range(3)]
    if recipe.startswith("fp8"):
        return _fp8(high, rowwise=recipe.endswith("rowwise"))
    dtype = {"fp16": torch.float16, "bf16-autocast": torch.bfloat16}.get(recipe, torch.float32)
    sets = [(x.to(dtype), w.to(dtype)) for x, w in high]
    return lambda i: sets[i % 3][0] @ sets[i % 3][1].t()


def _fp8(high: list[tuple[Any, Any]], *, rowwise: bool) -> Callable[[int], object]:
    sets = []
    for x, w in high:
        sx = (x.abs().amax(1, keepdim=True) if rowwise else x.abs().amax()) / 448.0
        sw = (w.abs().amax(1, keepdim=True) if rowwise else w.abs().amax()) / 448.0
        sets.append(((x / sx).to(torch.float8_e4m3fn), (w / sw).to(torch.float8_e4m3fn), sx, sw.t() if rowwise else sw))

    def call(i: int) -> object:
        a, b, sa, sb = sets[i % 3]
        return torch._scaled_mm(a, b.t(), scale_a=sa, scale_b=sb, out_dtype=torch.bfloat16, use_fast_accum=True)

    return call


def copy_bytes_per_s(kind: str) -> float:
    """Return the bandwidth of reading and writing a buffer far larger than any cache."""
    size = 2**28 if kind == "cuda" else 2**25
    a = torch.randn(size, device=kind)
    b = torch.empty_like(a)
    return float(2 * a.nbytes / seconds_per_call(lambda _: b.copy_(a), kind))


def probed_rates(record: Path | None) -> dict[str, float]:
    """Return the rates of a record by probe id, in FLOP/s or bytes/s."""
    if record is None or not record.exists():
        return {}
    rates = {}
    for point in read_measurements(record).latest():
        work = (
            point.counts.flop_model
            if point.kind == "gemm"
            else point.counts.bytes_min
            if point.kind == "bandwidth"
            else None
        )
        if work and point.time.median_s:
            rates[point.probe_id] = work / point.time.median_s
    return rates


def main() -> None:
    """Measure and write."""
    parser = argparse.ArgumentParser()
    parser.add_argument("out", type=Path)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--record", type=Path)
    asked = parser.parse_args()
    probed = probed_rates(asked.record)
    document: dict[str, Any] = {}
    rows: list[dict[str, Any]] = []
    for shape in SHAPES[asked.device]:
        for recipe in RECIPES[asked.device]:
            m, n, k = shape
            try:
                rate = 2.0 * m * n * k / seconds_per_call(product(recipe, m, n, k, asked.device), asked.device)
            except RuntimeError as error:
                rows.append({"shape": shape, "recipe": recipe, "reason": str(error).splitlines()[0][:120]})
                continue
            own = probed.get(f"gemm/{m}x{n}x{k}/forward/{recipe}")
            rows.append(
                {"shape": shape, "recipe": recipe, "loop_tflop_per_s": rate / TERA,
                 "probe_tflop_per_s": own / TERA if own else None, "probe_over_loop": own / rate if own else None}
            )  # fmt: skip
            sys.stdout.write(f"{rows[-1]}\n")
            document = {"products": rows}
            write(asked.out, document)  # later steps may fail, or not be reached
    copy = copy_bytes_per_s(asked.device)
    own = probed.get("bandwidth/copy")
    document["copy"] = {
        "loop_bytes_per_s": copy,
        "probe_bytes_per_s": own,
        "probe_over_loop": own / copy if own else None,
    }
    write(asked.out, document)
    sys.stdout.write(f"{document['copy']}\n")


def write(path: Path, document: dict[str, Any]) -> None:
    """Write a document completely, or leave the earlier one."""
    part = path.with_name(f"{path.name}.part")
    part.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    part.replace(path)


if __name__ == "__main__":
    main()
