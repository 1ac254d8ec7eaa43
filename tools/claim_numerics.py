"""Training results for the claims: `make claimnumerics` runs `mpplan numerics` and keeps the parts that claims read.

FP16 and BF16 run natively on every CPU that PyTorch supports; nothing in the file is emulated. There are two tasks: a
decoder for the magnitude of gradients, and image classification for an accuracy, with the margin of a tenth of a point
that the literature claims (c30).
"""

from __future__ import annotations

import json
import os
import platform
import shlex
import subprocess
import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from planner.claims.evidence.trained import FILE, trained_of

FLAGS = (
    "numerics", "--device", "cpu", "--budget", "15m", "--task", "char-lm,digits-cnn", "--precision", "bf16,fp16",
    "--metric", "accuracy", "--margin", "0.001", "--seeds", "8", "--json",
)  # fmt: skip
_SCALING = ("task", "precision", "mode", "smallest_with_overflow_log2", "dynamic")
_PARITY = ("task", "metric", "margin", "steps", "seeds", "baseline_mean")
_PAIR = (
    "precision", "mode", "baseline", "metric", "verdict", "pairs", "diverged", "difference_low", "difference_mid",
    "difference_high", "difference_sd", "margin", "seeds_needed",
)  # fmt: skip


def part_of(document: dict[str, Any], recorded: dict[str, Any]) -> dict[str, Any]:
    """Return the part of a document of `mpplan numerics` that claims read, with its origin.

    Args:
        document: `mpplan.numerics/1`.
        recorded: date, machine and command of the run.
    """
    return {
        "recorded": recorded,
        **{name: document[name] for name in ("schema", "mpplan", "device", "device_name", "size", "software")},
        "loss_scaling": [{name: part[name] for name in _SCALING} for part in document["loss_scaling"]],
        "histograms": [_gradients(part) for part in document["histograms"]],
        "parity": [
            {name: part[name] for name in _PARITY} | {"pairs": [{n: pair[n] for n in _PAIR} for pair in part["pairs"]]}
            for part in document["parity"]
        ],
    }


def _gradients(part: dict[str, Any]) -> dict[str, Any]:
    seen = part["overall"]["tensors"]["gradients"]
    kept = {name: seen[name] for name in ("values", "least_exponent", "counts")}
    formats = {"bf16": {"flushed_ratio": seen["formats"]["bf16"]["flushed_ratio"]}}
    whole = {name: part[name] for name in ("task", "precision", "mode", "steps")}
    return whole | {"overall": {"tensors": {"gradients": kept | {"formats": formats}}}}


def whole(document: dict[str, Any]) -> bool:
    """Return whether every task has gradients, scales, and pairs of both precisions; fewer seeds are enough."""
    trained, tasks = trained_of(document, "new"), {task["id"] for task in document["tasks"]}
    parts = ({part.task for part in trained.flushing}, {part.task for part in trained.scaling})
    pairs = ({pair.task for pair in trained.pairs if pair.precision == name} for name in ("bf16", "fp16"))
    return all(covered == tasks for covered in (*parts, *pairs))


def cpu_name() -> str:
    """Return the name of this machine's CPU."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    named = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return named[0] if named else platform.processor() or platform.machine()


def main() -> None:
    """Train, and write the file; exit with an error if a task lacks a required section."""
    with tempfile.TemporaryDirectory() as empty:
        asked = [sys.executable, "-m", "mpplan", *FLAGS]
        ended = subprocess.run(asked, env=os.environ | {"XDG_DATA_HOME": empty}, check=True, stdout=subprocess.PIPE)
    document = json.loads(ended.stdout)
    if not whole(document):
        sys.exit(f"cut short, nothing written: {document['cut_short']}; a calm machine has more time")
    seeds = max(part["seeds"] for part in document["parity"])
    recorded = {
        "date": datetime.now(tz=UTC).date().isoformat(), "cpu": cpu_name(), "command": shlex.join(["mpplan", *FLAGS]),
        "seeds": f"0 to {seeds - 1}; scales and histograms seed 0", "emulated": False,
        "cut_short": document["cut_short"],
    }  # fmt: skip
    FILE.write_text(json.dumps(part_of(document, recorded), indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
