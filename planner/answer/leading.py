"""The GPU that an answer's sentence is about where its plans use several; other single-plan views show it too."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

PlanRow = Mapping[str, Any]
"""A plan as the document has it."""
Row = TypeVar("Row", bound=PlanRow)


def leading_gpu(plans: Sequence[PlanRow], precision: str) -> str:
    """Return the cheapest GPU on which a precision fits or, with a budget alone, the one that finishes soonest.

    Without prices it is the first GPU on which the precision fits. Empty without plans.

    Args:
        plans: the plans on the same GPUs (`plans` of the document), in its order.
        precision: the requested precision.
    """
    of_precision: dict[str, PlanRow] = {}
    for plan in plans:
        if plan["precision"] == precision:
            of_precision.setdefault(str(plan["gpu"]), plan)
    gpus = dict.fromkeys(str(plan["gpu"]) for plan in plans)
    return min(gpus, key=lambda gpu: _rank(of_precision.get(gpu)), default="")


def _rank(plan: PlanRow | None) -> tuple[int, float]:
    """Rank a GPU: first those that fit at a known cost, by cost or by the end it buys, then others that fit."""
    if plan is None or not plan["fits"]:
        return (2, 0.0)
    cost = plan.get("cost_usd")
    if cost is None or cost.get("at_least"):  # without prices nothing ranks them, so the first requested GPU wins
        return (1, 0.0)
    likely = plan.get("probability") or {}
    is_budget_spent = likely.get("budget") is not None and likely.get("deadline") is None
    return (0, float(plan["duration_days"]["mid"] if is_budget_spent else cost["mid"]))


def leading_plan(rows: Sequence[Row], leading: str) -> Row:
    """Return the leading GPU's plan among the plans of one view; where it does not fit there, the first that fits.

    Args:
        rows: at least one plan, for example all of one precision.
        leading: the GPU of the answer's sentence.
    """
    return min(rows, key=lambda plan: (not plan["fits"], plan["gpu"] != leading))
