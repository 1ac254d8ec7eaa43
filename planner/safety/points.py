"""Policies and schedules of a document of `mpplan numerics`, as points between two precisions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from planner.answer.training_shown import MixturePoint
from planner.evidence import Estimate
from planner.training.policies import load_policies

Doc = Mapping[str, Any]

POLICY, SCHEDULE = "policy", "schedule"
SCHEDULES = {"all high": "all_high", "all low": "all_low", "high first": "high_first", "high last": "high_last"}


def policy_points(policy: Doc, high: str) -> Iterator[MixturePoint]:
    """Points of the recommended policy, of all high (its reference) and of all low, all from the same warm start.

    Args:
        policy: section of the document for one task; empty if it has none.
        high: the higher precision of a plan.
    """
    ratio = policy.get("lowered_parameters_ratio")
    if ratio is None or not 0.0 < ratio < 1.0 or not policy["steps"]:  # otherwise all is in one precision
        return
    lowered = {"loss_change": policy["all_lowered_loss_change"]} | _ends_of(policy, "all_lowered_loss_change")
    yield _point("all_high", POLICY, 0.0, {"loss_change": 0.0}, policy, high)
    yield _point("all_low", POLICY, 1.0, lowered, policy, high)
    yield _point("policy", POLICY, ratio, policy, policy, high, recommended=bool(policy["recommended"]))


def schedule_points(schedule: Doc, high: str) -> Iterator[MixturePoint]:
    """Points of the schedules, of all high and of all low, all from the beginning of training.

    Args:
        schedule: section of the document for one task; empty if it has none.
        high: the higher precision of a plan.
    """
    for row in schedule.get("schedules", ()):
        name = SCHEDULES.get(row["name"])
        if name is not None:
            share = {"all_high": 0.0, "all_low": 1.0}.get(name, 1.0 - schedule["high_ratio"])
            recommended = row["name"] == schedule["recommended"]
            yield _point(name, SCHEDULE, share, row, schedule, high, recommended=recommended)


def _point(
    name: str, kind: str, share: float, row: Doc, section: Doc, high: str, *, recommended: bool = False
) -> MixturePoint:
    change: float | None = row.get("loss_change")
    interval = Estimate.exactly(0.0) if name == "all_high" else _interval(row, change)
    margin = float(section["margin"])
    # A recommended point must be within the margin at the upper end of its interval, not only at its mid value.
    recommended = recommended and interval is not None and interval.high <= margin
    return MixturePoint(
        name=name, precision=precision_of(section["precision"]), high=high, low_share_ratio=share, loss_change=change,
        loss_range=interval, steps=section["steps"], seeds=row.get("seeds", section.get("seeds")),
        diverged=row.get("diverged") or 0, kind=kind, margin=margin, recommended=recommended,
    )  # fmt: skip


def _ends_of(section: Doc, name: str) -> dict[str, Any]:
    return {f"loss_change_{end}": section.get(f"{name}_{end}") for end in ("low", "high")}


def _interval(row: Doc, mid: float | None) -> Estimate | None:
    low, high = row.get("loss_change_low"), row.get("loss_change_high")
    if low is None or mid is None or high is None or not low <= mid <= high:
        return None
    return Estimate(low=low, mid=mid, high=high)


def precision_of(recipe: str) -> str:
    """Precision by which a plan names a recipe."""
    policy = load_policies().get(recipe)
    return recipe if policy is None else policy.precision
