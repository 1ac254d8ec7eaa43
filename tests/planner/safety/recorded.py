"""What a run of `mpplan numerics --device cpu --budget 120s --json` printed, with most layers and scales left out."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

PATH = Path(__file__).with_name("numerics.json")


def document() -> dict[str, Any]:
    """A fresh copy."""
    parsed: dict[str, Any] = json.loads(PATH.read_text(encoding="utf-8"))
    return parsed


def with_policy() -> dict[str, Any]:
    """The same with a policy that keeps two layers high, intervals everywhere and more layers: as much as is drawn."""
    changed = document()
    policy, schedule, lowered = (changed[name][0] for name in ("policy", "schedule", "sensitivity"))
    policy |= {
        "lowered_parameters_ratio": 0.62, "keep_high": [row["layers"][0] for row in lowered["layers"][:2]], "seeds": 3,
        "loss_change": 0.004, "loss_change_low": -0.002, "loss_change_high": 0.01, "all_lowered_loss_change": 0.03,
        "all_lowered_loss_change_low": 0.01, "all_lowered_loss_change_high": 0.05,
    }  # fmt: skip
    for row in schedule["schedules"]:
        change = row["loss_change"]
        row |= {"loss_change_low": change - 0.01, "loss_change_high": change + 0.01, "seeds": 2, "diverged": 0}
    lowered["layers"] = lowered["layers"] * 2
    return changed


def overflowing() -> dict[str, Any]:
    """The same with what a model showed whose inputs are beyond 65504: 400 of 400 steps skipped, 8 of 8 pairs lost."""
    changed = document()
    scaling = next(row for row in changed["loss_scaling"] if row["task"] == changed["tasks"][0]["id"])
    for run in scaling["dynamic"]:
        run |= {
            "steps": 400, "skipped": 400, "skipped_step_ratio": 1.0, "settled_skipped_step_ratio": None,
            "overflow_steps": list(range(400)), "path": [[0, 16.0]],
        }  # fmt: skip
    for row in scaling["static"]:
        row |= {"steps": 2, "skipped": 2, "loss": None}
    scaling |= {"largest_without_overflow_log2": None, "smallest_with_overflow_log2": 0}
    pair = next(row for row in changed["parity"][0]["pairs"] if row["precision"] == "fp16")
    pair |= {
        "verdict": "not_equivalent", "pairs": 0, "diverged": 8, "difference_low": None, "difference_mid": None,
        "difference_high": None, "difference_sd": None, "p_value": None, "seeds_needed": None, "mean": None,
        "differences": [None] * 8, "skipped_step_ratio": 1.0,
    }  # fmt: skip
    return changed
