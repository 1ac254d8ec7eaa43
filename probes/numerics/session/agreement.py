"""Check a policy against parity and schedule of the same task; a contradicted policy is not recommended.

A policy is trained from a warm start; parity and schedules start from new weights and often train for longer. If either
of them lowers no more than the policy does and shows a loss change that may exceed the margin, the policy is withdrawn,
because its shorter runs do not outweigh that evidence.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from probes.numerics.statistics.equivalence import CANNOT_TELL, EQUIVALENT

Plain = dict[str, Any]

ALL_LOW = "all low"


def held_to(policy: Plain, parity: Mapping[str, Any] | None, schedule: Mapping[str, Any] | None) -> Plain:
    """Return the policy as it may be reported beside parity and schedule; unchanged if they agree with it.

    Args:
        policy: the policy section's answer about a task.
        parity: the parity section's answer about the same task; None: there is none.
        schedule: the schedule section's answer about the same task; None: there is none.
    """
    recipe_layers = set((policy["usual"] or {}).get("layers", ()))
    if not policy["lower"] or not recipe_layers <= set(policy["lower"]):
        return policy  # it recommends nothing, or keeps layers high that parity and schedule lowered
    margin = policy["margin"]
    pair = next((row for row in (parity or {}).get("pairs", ()) if row["precision"] == policy["precision"]), None)
    if pair is not None and pair["metric"] == "loss" and _beyond(pair, "difference", margin):
        return _withdrawn(policy, f"parity over {(parity or {})['steps']} steps", pair, "difference")
    if schedule is not None and schedule["precision"] == policy["precision"]:
        low = next((row for row in schedule["schedules"] if row["name"] == ALL_LOW), None)
        if low is not None and _beyond(low, "loss_change", margin):
            what = f"the schedule with all of {schedule['steps']} steps low"
            return _withdrawn(policy, what, low, "loss_change")
    return policy


def _beyond(row: Mapping[str, Any], figure: str, margin: float) -> bool:
    """Return whether a loss change was not shown to be equivalent and reaches beyond the margin, or a run diverged."""
    high = row[f"{figure}_high"]
    return row["verdict"] != EQUIVALENT and (row["diverged"] > 0 or (high is not None and high > margin))


def _withdrawn(policy: Plain, what: str, row: Mapping[str, Any], figure: str) -> Plain:
    if row["diverged"]:
        seen = f"{row['diverged']} runs ended without a finite loss"
    else:
        seen = f"the loss rises by up to {row[f'{figure}_high']:+.2g}"
    return {
        **policy, "verdict": CANNOT_TELL, "recommended": False, "keep_high": [], "keep_high_kinds": {}, "lower": [],
        "lowered_parameters_ratio": None, "loss_change": None, "loss_change_low": None, "loss_change_high": None,
        "words": f"cannot be told: {policy['steps']} steps from a warm start stayed within the margin, but in {what} "
                 f"{seen}",
    }  # fmt: skip
