"""Idle power of a GPU by the previous actions of a process, and the rate of products at first and after a second.

    python benchmarks/h200/measure_clocks.py OUT.json [--device cuda]

It shares no code with the probe's clock, protocol or sensor: it uses NVML's energy counter over spans of time and plain
torch. Without a GPU it writes the reason for the missing results.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from benchmarks.h200.measure_limits import product, write
from planner.units import MILLI, TERA

SIZE = 8192
RECIPES = ("bf16-autocast", "fp32", "tf32", "fp8")
RUN_S, FIRST_S, LATER_S = 1.9, 0.4, 1.0
BATCH = {"fp32": 4}
"""Products between two readings of the clock; 60 where not listed."""
REST_S, AFTER_S = 2.5, 0.5


class Board:
    """The first GPU, read through NVML."""

    def __init__(self) -> None:
        import pynvml

        pynvml.nvmlInit()
        self._nvml, self._handle = pynvml, pynvml.nvmlDeviceGetHandleByIndex(0)

    def power_w(self, seconds: float) -> float:
        """Return the mean power over a span that begins now."""
        begun, before = time.monotonic(), self._nvml.nvmlDeviceGetTotalEnergyConsumption(self._handle)
        time.sleep(seconds)
        used = self._nvml.nvmlDeviceGetTotalEnergyConsumption(self._handle) - before
        return float(used * MILLI / (time.monotonic() - begun))

    def clock_mhz(self) -> int:
        """Return the current clock of the multiprocessors."""
        return int(self._nvml.nvmlDeviceGetClockInfo(self._handle, self._nvml.NVML_CLOCK_SM))

    def at_rest(self, what: str) -> dict[str, Any]:
        """Return power and clock at rest, with a note of what was done before."""
        return {"after": what, "power_w": self.power_w(REST_S), "sm_clock_mhz": self.clock_mhz()}


def main() -> None:
    """Measure and write."""
    parser = argparse.ArgumentParser()
    parser.add_argument("out", type=Path)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--only-context", action="store_true", help="make a context, say how the power rose, and end")
    asked = parser.parse_args()
    if asked.device != "cuda":
        write(asked.out, {"reason": "only a GPU has a power that rises with a context"})
        return
    board = Board()
    if asked.only_context:
        write(asked.out, {"rest": _rise(board)})
        return
    command = [sys.executable, __file__, str(asked.out), "--only-context"]  # in a separate process, which then ends
    subprocess.run(command, check=True)
    document = json.loads(asked.out.read_text(encoding="utf-8"))
    document["after_the_process"] = [
        {"power_w": board.power_w(AFTER_S), "sm_clock_mhz": board.clock_mhz()} for _ in range(9)
    ]
    write(asked.out, document)
    document["products"] = [_sustained(recipe, board) for recipe in RECIPES]
    write(asked.out, document)
    sys.stdout.write(json.dumps(document)[:600] + "\n")


def _rise(board: Board) -> list[dict[str, Any]]:
    rows = [board.at_rest("nothing")]
    import torch

    rows.append(board.at_rest("import torch"))
    torch.cuda.is_available()
    torch.cuda.get_device_properties(0)
    rows.append(board.at_rest("torch.cuda.get_device_properties"))
    held = torch.zeros(8, device="cuda")
    torch.cuda.synchronize()
    rows.append(board.at_rest("a tensor on the GPU"))
    del held
    return rows


def _sustained(recipe: str, board: Board) -> dict[str, Any]:
    """Return rates and clocks of a square product that runs for two seconds."""
    import torch

    call = product(recipe, SIZE, SIZE, SIZE, "cuda")
    for i in range(3):
        call(i)
    torch.cuda.synchronize()
    count, rows, begun = BATCH.get(recipe, 60), [], time.monotonic()
    while time.monotonic() - begun < RUN_S:
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        start.record()
        for i in range(count):
            call(i)
        end.record()
        clock_mhz = board.clock_mhz()
        torch.cuda.synchronize()
        rate = 2.0 * SIZE**3 * count / (start.elapsed_time(end) * MILLI) / TERA
        rows.append((time.monotonic() - begun, rate, clock_mhz))
    spans = {"first": [row for row in rows if row[0] < FIRST_S], "later": [row for row in rows if row[0] > LATER_S]}
    return {"recipe": recipe} | {
        name: {
            "tflop_per_s": statistics.median(row[1] for row in span),
            "sm_clock_mhz": statistics.median(row[2] for row in span),
        }
        for name, span in spans.items()
        if span
    }


if __name__ == "__main__":
    main()
