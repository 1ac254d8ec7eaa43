"""For a budget just below the cost of many more GPUs: how much more money finishes the run much sooner."""

from __future__ import annotations

import numpy as np

from planner.errors import Message
from planner.evidence import Estimate
from planner.planning.choice import Choice, best_on
from planner.planning.counting.search import CountSearch
from planner.planning.targets import at_confidence, rounded_up_usd
from planner.units import DAY_S

LITTLE_MORE = 1.1
"""Factor over the budget up to which an amount counts as little more money."""
MUCH_SOONER = 0.75
"""A run must take at most this share of the plan's time to be worth the money."""
MOST_TRIED = 2
"""Number of GPU counts that are planned for it, the soonest at mid first."""


def much_sooner(search: CountSearch, chosen: Choice) -> Message | None:
    """Return a message that slightly more money than the budget finishes a run much sooner; None where it does not.

    Args:
        search: the search for the soonest end within the budget, with the figures of the other numbers of GPUs it saw.
        chosen: the choice that it found.
    """
    budget, case, near_misses = search.targets.budget_usd, search.case, search.near_misses
    mid_usd, mid_s = float(chosen.scores.cost_usd[chosen.best]), float(chosen.scores.wall_s[chosen.best])
    if budget is None or not mid_usd:  # a run that costs nothing already ends as soon as it can
        return None
    plan = case.evaluate(chosen.winner, search.draws)
    ratio = at_confidence(plan.cost_usd, search.targets.confidence_ratio) / mid_usd
    soon = [
        gpus
        for gpus, wall_s in sorted(near_misses.wall_s.items(), key=lambda item: item[1])
        if wall_s <= MUCH_SOONER * mid_s and near_misses.cost_usd[gpus] * ratio <= LITTLE_MORE * budget
    ]
    planned_days = _days(plan.wall_s)
    for gpus in soon[:MOST_TRIED]:
        choice = best_on(case, search.fixed, gpus)
        if choice.best is None or not choice.safe:
            continue
        drawn = case.evaluate(choice.winner, search.draws)
        needed = rounded_up_usd(at_confidence(drawn.cost_usd, search.targets.confidence_ratio))
        days = _days(drawn.wall_s)
        if budget < needed <= LITTLE_MORE * budget and days <= MUCH_SOONER * planned_days:
            return Message.of(
                "warning.little_more", gpu=case.cluster.gpu.id, gpus=gpus, budget_usd=needed,
                more=needed / budget - 1.0, days=days, planned_days=planned_days, planned=chosen.gpus,
            )  # fmt: skip
    return None


def _days(wall_s: object) -> float:
    """Return the middle of some drawn durations in days, as a plan shows it."""
    return Estimate.of_draws(np.ravel(np.asarray(wall_s, dtype=np.float64)) / DAY_S).mid
