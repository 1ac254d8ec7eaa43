"""A run of the probe on two fake GPUs: the processes of both ranks, and how each ended."""

from __future__ import annotations

import json
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from planner.records.jsonl import MeasurementFile, read_measurements
from planner.records.measurement import Measurement
from probes.record.options import Options
from tests.probes.ranks.forked import forking

LIMIT_S = 900.0

OUT_OF_MEMORY = (
    "collective/all_gather/world/1x2/4194304",
    "parallel_step/llama-3.2-1b-L16-s2048b8/ddp/1x2/bf16-autocast",
)
"""Of one point that others are measured beside, and of one whose steps follow in the build."""
CAPPED = {"power_limit_w": 500.0, "sm_clock_hz": 1.2e9, "clock_event_mask": 0x40, "slowness_ratio": 1.25}
"""A rank slowed down by heat (NVML's clock event reason 0x40)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RanksRun:
    """What came of a run of two ranks."""

    codes: tuple[int, ...]
    """Exit codes in order of ranks."""
    events: list[dict[str, Any]]
    """Of rank 0."""
    record: MeasurementFile | None

    @property
    def points(self) -> tuple[Measurement, ...]:
        """What was measured."""
        assert self.record is not None
        return self.record.latest()


def run_ranks(path: Path, special: dict[str, Any], **options: Any) -> RanksRun:
    """Run the probe on two fake GPUs, and wait until both ranks have ended."""
    asked = Options(
        **({"device": "cuda", "suite": "quick", "ranks": 2, "path": str(path), "join_s": LIMIT_S} | options)
    )
    codes = path.with_name("codes.json")
    command = ["-m", "tests.probes.ranks.fake_gpus", asked.to_json(), json.dumps(special), str(codes)]
    quiet = {"stdin": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    with forking(command, stdout=subprocess.PIPE, **quiet) as process:
        stdout, _ = process.communicate(timeout=LIMIT_S)
    return RanksRun(
        codes=tuple(json.loads(codes.read_text(encoding="utf-8"))),
        events=[json.loads(line) for line in stdout.splitlines()],
        record=read_measurements(path) if path.exists() else None,
    )


def run_quick(folder: Path) -> RanksRun:
    """The quick suite and its verification, where rank 1 is slow and runs out of memory twice."""
    special = {"1": CAPPED | {"out_of_memory": OUT_OF_MEMORY}}
    return run_ranks(folder / "r.jsonl", special, precisions=("bf16-autocast",), verify=True)


def run_broken(folder: Path) -> RanksRun:
    """NCCL fails on rank 1 while rank 0 waits for it; each process is shown one GPU alone."""
    only_gpu = {"index": 0, "count": 1}
    special = {"0": only_gpu, "1": only_gpu | {"broken": ["waiting/all_reduce"]}}
    return run_ranks(folder / "r.jsonl", special, workloads=("waiting",), precisions=("bf16-autocast",))


def run_mixed(folder: Path) -> RanksRun:
    """The GPU of rank 1 is another one."""
    return run_ranks(folder / "r.jsonl", {"1": {"name": "NVIDIA A100-SXM4-80GB"}})
