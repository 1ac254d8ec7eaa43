"""Measurements for tests: complete lines with made-up figures of a made-up device."""

from __future__ import annotations

from pathlib import Path

from planner.measurement import Measurement
from planner.measurement_file import to_line

H200 = {
    "device_kind": "cuda",
    "device_name": "NVIDIA H200",
    "memory_total_bytes": 150754820096.0,
    "power_limit_w": 700.0,
}
"""What the driver of an H200 reports: 143771 MiB, 700 W."""


def a_measurement(**changes: object) -> Measurement:
    """A valid matrix product on a CPU, with some fields changed."""
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
    return Measurement(**(values | changes))  # type: ignore[arg-type]


def a_canary(**changes: object) -> Measurement:
    """A canary line."""
    return a_measurement(**({"probe_id": "canary", "kind": "canary"} | changes))


def write_record(path: Path, *measurements: Measurement) -> Path:
    """A record file of these lines."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(to_line(one) + "\n" for one in measurements), encoding="utf-8")
    return path
