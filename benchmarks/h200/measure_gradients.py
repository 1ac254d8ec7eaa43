"""The time of the two gradient products relative to a layer's forward product, by precision, at real layer sizes.

    python -m benchmarks.h200.measure_gradients OUT.json [--device cuda]

For TF32, FP16, FP32 and FP8 with row-wise scales the suite measures this at only one square size. The products are the
probe's own; the clock is the one of `measure_limits.py`.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from pathlib import Path
from typing import Any

import torch

from benchmarks.h200.measure_limits import seconds_per_call, write
from planner.units import TERA
from probes.device.device import open_device
from probes.precisions import recipe_by_id
from probes.precisions.interface import ROLES

LAYERS: dict[str, dict[str, tuple[int, tuple[tuple[int, int], ...]]]] = {
    "cuda": {
        "llama-3.1-8b": (8192, ((6144, 4096), (4096, 4096), (28672, 4096), (4096, 14336))),
        "llama-3.2-1b": (2048, ((3072, 2048), (2048, 2048), (16384, 2048), (2048, 8192))),
    },
    "cpu": {"tiny": (256, ((512, 256),))},
}
"""Tokens, and `(N, K)` of a decoder layer's products, by model."""
RECIPES = {"cuda": ("bf16-autocast", "tf32", "fp8", "fp8-rowwise", "fp32"), "cpu": ("fp32", "bf16-autocast")}
SETS, ROUNDS = 3, 5


def main() -> None:
    """Measure and write."""
    parser = argparse.ArgumentParser()
    parser.add_argument("out", type=Path)
    parser.add_argument("--device", default="cuda")
    asked = parser.parse_args()
    device = open_device(asked.device)
    rows: list[dict[str, Any]] = []
    for recipe_id in RECIPES[asked.device]:
        recipe = recipe_by_id(recipe_id)
        if asked.device == "cuda":
            torch.set_float32_matmul_precision("high" if recipe.tf32 else "highest")
        for model, (tokens, products) in LAYERS[asked.device].items():
            for n, k in products:
                row: dict[str, Any] = {"recipe": recipe_id, "model": model, "mnk": (tokens, n, k)}
                for role in ROLES:
                    call = recipe.product(recipe, role, tokens, n, k, device, SETS)
                    seconds = seconds_per_call(lambda _, call=call: call(), asked.device, ROUNDS)  # type: ignore[misc]
                    row[f"{role}_tflop_per_s"] = 2.0 * tokens * n * k / seconds / TERA
                row["gradients_over_forward"] = statistics.mean(
                    row["forward_tflop_per_s"] / row[f"{role}_tflop_per_s"] for role in ROLES[1:]
                )
                rows.append(row)
                write(asked.out, {"products": rows})  # later steps may fail, or not be reached
                sys.stdout.write(f"{json.dumps(row)}\n")


if __name__ == "__main__":
    main()
