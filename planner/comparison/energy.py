"""The power of a run by its plan, from which its energy follows: no log states what the building's meter shows."""

from __future__ import annotations

from planner.comparison.basis import Basis
from planner.comparison.planned import Planned
from planner.evidence import Estimate


def mean_power_mw_per_gpu(planned: Planned | None, basis: Basis) -> Estimate | None:
    """Return the mean power at the building's meter per GPU of the run, in MW, with its range.

    It is the plan's, over its whole duration: GPUs, hosts and network, stops included. None without a plan, for a run
    on another GPU, and where the plan does not know the power of its GPU.

    Args:
        planned: the plan; None without one.
        basis: the settled inputs of the run.
    """
    if planned is None or "gpu" in basis.differs or planned.plan.get("mean_power_mw") is None:
        return None
    power_mw, gpus = planned.plan["mean_power_mw"], planned.plan["gpus"]
    if power_mw.get("at_least") or not power_mw["low"] > 0:
        return None
    return Estimate(**{end: power_mw[end] / gpus for end in ("low", "mid", "high")})
