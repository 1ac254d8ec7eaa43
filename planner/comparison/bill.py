"""The cost of a run by its plan: costs that grow with its GPU-hours, and costs paid once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from planner.comparison.basis import Given
from planner.comparison.planned import Planned
from planner.costs.rounding import LUMP_SUM
from planner.errors import Message
from planner.evidence import Estimate
from planner.lazy import dataclass

Line = Mapping[str, Any]

HOURLY = ("gpu_rental", "gpu_owned", "electricity", "network", "cpu_hosts", "failed_work")
"""Lines of a bill that grow with the run's GPU-hours. All others are paid once: fees, storage, prior experiments."""
LABELS = {
    "minimum_term": Message.of("cost.minimum_term"), "setup_fee": Message.of("cost.setup_fee"),
    "storage": Message.of("cost.storage"), "egress": Message.of("cost.egress"),
    "experiments": Message.of("cost.experiments"),
}  # fmt: skip
"""Labels of lines that are paid once; other lines keep the plan's text."""
RENTAL, MINIMUM, FAILED, EXPERIMENTS = "gpu_rental", "minimum_term", "failed_work", "experiments"


@dataclass(frozen=True, slots=True, kw_only=True)
class OnceCost:
    """A cost of the plan that does not grow with the hours of the run."""

    id: str
    """Id of the plan's line, for example `setup_fee`."""
    label: Message | str
    usd: float


def unit_price(planned: Planned | None, given: Given) -> Estimate | None:
    """Return the USD per GPU-hour: the user's, else the plan's hourly costs; None where neither has a price."""
    if given.price_usd_per_gpu_h is not None:
        return Estimate.exactly(given.price_usd_per_gpu_h)
    if planned is None or planned.plan.get("cost_usd") is None or planned.plan.get("gpu_hours") is None:
        return None
    cost, hours = planned.plan["cost_usd"], planned.plan["gpu_hours"]["mid"]
    if cost.get("at_least") or not hours > 0:
        return None
    lines = _lines(planned)
    if not lines:
        return Estimate.exactly(cost["mid"] / hours)
    hourly = list(_leaves([line for line in lines if line["id"] in HOURLY]))
    low, mid, high = (sum(_usd(line, end) for line in hourly) / hours for end in ("low", "mid", "high"))
    return Estimate(low=min(low, mid), mid=mid, high=max(high, mid))


def once_costs(planned: Planned | None, given: Given, gpu_hours: float | None) -> tuple[OnceCost, ...]:
    """Return the costs paid once, whatever the run takes; none where the user's price replaces the plan's.

    An unused minimum is what the whole run leaves of it: hours beyond the plan's, and their part of failed work, are
    first covered by the minimum.

    Args:
        planned: the plan; None without one.
        given: the user's own values.
        gpu_hours: GPU-hours of the whole run; None where unknown, in which case the plan's are used.
    """
    if planned is None or unit_price(planned, given) is None or given.price_usd_per_gpu_h is not None:
        return ()
    lines = _lines(planned)
    costs = [
        OnceCost(id=line["id"], label=LABELS.get(line["id"], str(line["label"])), usd=_once_usd(line, lines, gpu_hours))
        for line in lines
        if line["id"] not in HOURLY
    ]
    return tuple(cost for cost in costs if cost.usd > 0)


def _once_usd(line: Line, lines: Sequence[Line], gpu_hours: float | None) -> float:
    rental = next((other for other in lines if other["id"] == RENTAL), None)
    if line["id"] != MINIMUM or gpu_hours is None or rental is None:
        return float(line["usd"]["mid"])
    planned = rental["quantity"]
    failed_h, experiments_h = (planned * _work_ratio(lines, name) for name in (FAILED, EXPERIMENTS))
    least = planned + failed_h + experiments_h + line["quantity"]
    used = gpu_hours + failed_h * gpu_hours / planned + experiments_h
    return float(max(least - used, 0.0) * line["unit_price_usd"]["mid"])


def _work_ratio(lines: Sequence[Line], name: str) -> float:
    """Return the GPU-hours of work beside the run as a share of the run's, which is its share of their cost too."""
    base = sum(line["usd"]["mid"] for line in lines if line["id"] in (RENTAL, "electricity"))
    return float(sum(line["usd"]["mid"] for line in lines if line["id"] == name) / base)


def _lines(planned: Planned) -> Sequence[Line]:
    return planned.plan.get("cost_lines") or ()


def _leaves(lines: Sequence[Line]) -> Iterator[Line]:
    for line in lines:
        if line.get("children"):
            yield from _leaves(line["children"])
        else:
            yield line


def _usd(line: Line, end: str) -> float:
    """Return the plan's quantity at one end of its price.

    A lump sum's ends already include those of the hours, so its mid is returned.
    """
    if end == "mid" or line.get("unit_price_usd") is None or line.get("unit") == LUMP_SUM:
        return float(line["usd"]["mid"])
    return float(line["quantity"] * line["unit_price_usd"][end])
