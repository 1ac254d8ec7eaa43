"""Measurements for tests: complete lines with made-up figures of a made-up device."""

from __future__ import annotations

from pathlib import Path

from planner.records.flat import nest
from planner.records.jsonl import to_line
from planner.records.measurement import Measurement

H200 = {
    "device_kind": "cuda",
    "device_name": "NVIDIA H200",
    "memory_total_bytes": 150754820096.0,
    "power_limit_w": 700.0,
}
"""What the driver of an H200 reports: 143771 MiB, 700 W."""


def a_measurement(**changes: object) -> Measurement:
    """A valid matrix product on a CPU, with some keys of its line changed."""
    values: dict[str, object] = {
        "suite_version": 1,
        "run_id": "0d0e5f0e-run",
        "probe_id": "gemm/1024x1024x1024/forward/bf16-autocast",
        "seq": 0,
        "status": "ok",
        "kind": "gemm",
        "precision": "bf16",
        "recipe": "bf16-autocast",
        "role": "forward",
        "time_median_s": 0.004,
        "time_ci_low_s": 0.00396,
        "time_ci_high_s": 0.00404,
        "samples": 20,
        "quality": "ok",
        "other_load_ratio": 0.01,
        "device_kind": "cpu",
        "device_name": "Some CPU",
        "timestamp_utc": "2026-11-20T12:00:00.000+00:00",
    }
    return nest(values | changes)


def a_canary(**changes: object) -> Measurement:
    """A canary line."""
    return a_measurement(**({"probe_id": "canary", "kind": "canary"} | changes))


def write_record(path: Path, *measurements: Measurement) -> Path:
    """A record file of these lines."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(to_line(point) + "\n" for point in measurements), encoding="utf-8")
    return path


RATE, BANDWIDTH, FIXED_S = 700e12, 3.5e12, 4e-6
"""The made-up law: flop / 700 TFLOP/s + bytes / 3.5 TB/s + 4 µs."""
SHAPES = [(n, n, n) for n in (1024, 2048, 4096, 8192, 16384)] + [
    (8192, 7168, 8192),
    (8192, 1280, 8192),
    (8192, 8192, 1024),
]


def gemm(m: int, n: int, k: int, recipe: str = "bf16-autocast", noise: float = 0.0, **changes: object) -> Measurement:
    flop, moved = 2.0 * m * n * k, 2.0 * (m * k + n * k + m * n)
    seconds = (flop / RATE + moved / BANDWIDTH + FIXED_S) * (1.0 + noise)
    return a_measurement(
        probe_id=f"gemm/{m}x{n}x{k}/forward/{recipe}",
        recipe=recipe,
        gemm_m=m,
        gemm_n=n,
        gemm_k=k,
        flop_model=flop,
        bytes_min=moved,
        time_median_s=seconds,
        time_ci_low_s=seconds,
        time_ci_high_s=seconds,
        **(H200 | changes),
    )


def attention(length: int, recipe: str = "bf16-autocast") -> Measurement:
    forward = 2.0 * 32 * 128 * length**2
    return a_measurement(
        probe_id=f"attention/s{length}/{recipe}", kind="attention", recipe=recipe, seq_len=length,
        flop_model=3.0 * forward, time_forward_median_s=forward / 400e12, time_backward_median_s=2.5 * forward / 350e12,
        time_median_s=forward / 400e12 + 2.5 * forward / 350e12, **H200,
    )  # fmt: skip


def copy(bandwidth: float = 4.2e12) -> Measurement:
    moved = 2.0 * 2**30
    return a_measurement(
        probe_id="bandwidth/copy",
        kind="bandwidth",
        role="copy",
        bytes_min=moved,
        time_median_s=moved / bandwidth,
        **H200,
    )


def kernels() -> list[Measurement]:
    return [*(gemm(*shape) for shape in SHAPES), *(attention(s) for s in (2048, 8192, 16384)), copy()]
