"""Fleets for tests: records of the same points of a made-up GPU, each member with its own pace, heat and limit."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from planner.fleet.fleet import Fleet, join
from planner.fleet.records import open_records
from planner.records.measurement import Measurement
from tests.planner.recorded import H200, a_canary, a_measurement, write_record

PRODUCTS = 11
"""Matrix products of a record, of 1, 2, 3 … ms, between the canary and an energy window."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Gpu:
    """One GPU as it will be measured."""

    slower: float = 1.0
    noise: float = 0.0
    """Relative standard deviation of each time."""
    temperature_c: float = 60.0
    power_limit_w: float = 700.0
    power_w: float = 600.0
    clock_hz: float = 1.7e9
    memory_bytes: float = 2e9
    changes: dict[str, object] = field(default_factory=dict)
    """Keys of every line."""


def points(number: int, gpu: Gpu) -> list[Measurement]:
    """The lines of one GPU's record."""
    random = Random(number)
    keys = H200 | {
        "run_id": f"run-{number}", "device_hash": f"{number:012x}", "temperature_end_c": gpu.temperature_c,
        "sm_clock_median_hz": gpu.clock_hz, "power_limit_w": gpu.power_limit_w, "regime": "sustained",
        "torch_version": "2.9.0", "power_mean_w": gpu.power_w, "memory_allocated_peak_bytes": gpu.memory_bytes,
    } | gpu.changes  # fmt: skip
    lines = [a_canary(**(keys | _times(0.004, gpu, random)))]
    for size in range(1, PRODUCTS + 1):
        lines.append(
            a_measurement(**(keys | {"seq": size, "probe_id": f"gemm/{size}"} | _times(size * 1e-3, gpu, random)))
        )
    times = _times(0.01, gpu, random)
    window = {"kind": "power", "probe_id": "power/bf16", "seq": PRODUCTS + 1, "energy_quality": "ok",
              "energy_j_per_iteration": gpu.power_w * times["time_median_s"]}  # fmt: skip
    return [*lines, a_measurement(**(keys | times | window))]


def _times(usual_s: float, gpu: Gpu, random: Random) -> dict[str, float]:
    time_s = usual_s * gpu.slower * (1.0 + random.gauss(0.0, gpu.noise))
    return {"time_median_s": time_s, "time_ci_low_s": 0.999 * time_s, "time_ci_high_s": 1.001 * time_s}


def write_fleet(folder: Path, *gpus: Gpu) -> list[Path]:
    """A record for each GPU: `node01.jsonl` and so on."""
    return [
        write_record(folder / f"node{number:02d}.jsonl", *points(number, gpu)) for number, gpu in enumerate(gpus, 1)
    ]


def joined(folder: Path, *gpus: Gpu, left_out: tuple[str, ...] = ()) -> Fleet:
    """Their records, joined."""
    return join(open_records(write_fleet(folder, *gpus)), left_out)


def ranks_point(number: int, times_s: list[float], **changes: object) -> Measurement:
    """A step of several ranks in one node's record: each rank by itself."""
    keys: dict[str, object] = {
        "run_id": f"run-{number}", "device_hash": f"{number:012x}", "kind": "parallel_step", "probe_id": "step/alone",
        "parallel": "alone", "world": len(times_s), "nodes": 1, "time_median_s": max(times_s),
        "time_ci_low_s": max(times_s), "time_ci_high_s": max(times_s),
        "rank_names": tuple(f"node 0 rank {rank}" for rank in range(len(times_s))), "rank_time_s": tuple(times_s),
    }  # fmt: skip
    return a_measurement(**(H200 | keys | changes))


def by_id(fleet: Fleet, probe_id: str) -> Measurement:
    """A line of the merged record."""
    return next(point for point in fleet.measurements if point.probe_id == probe_id)
