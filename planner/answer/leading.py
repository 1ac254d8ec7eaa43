"""The GPU of an answer's sentence, where it has plans on several: what else shows one plan alone shows that one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

PlanRow = Mapping[str, Any]
"""A plan as the document has it."""
Row = TypeVar("Row", bound=PlanRow)


def leading_gpu(plans: Sequence[PlanRow], precision: str) -> str:
    """The cheapest GPU on which a precision fits, or with a budget alone the one that ends the soonest within it.

    Without prices the first on which it fits. Empty without plans.

    Args:
        plans: those on the same GPUs (`plans` of the document), in its order.
        precision: the asked one.
    """
    of_precision: dict[str, PlanRow] = {}
    for plan in plans:
        if plan["precision"] == precision:
            of_precision.setdefault(str(plan["gpu"]), plan)
    gpus = dict.fromkeys(str(plan["gpu"]) for plan in plans)
    return min(gpus, key=lambda gpu: _rank(of_precision.get(gpu)), default="")


def _rank(plan: PlanRow | None) -> tuple[int, float]:
    """Where a GPU stands: those that fit at a known cost by it or the end that it buys, then those that fit."""
    if plan is None or not plan["fits"]:
        return (2, 0.0)
    cost = plan.get("cost_usd")
    if cost is None or cost.get("at_least"):  # without prices nothing ranks them: the first asked for
        return (1, 0.0)
    likely = plan.get("probability") or {}
    is_budget_spent = likely.get("budget") is not None and likely.get("deadline") is None
    return (0, float(plan["duration_days"]["mid"] if is_budget_spent else cost["mid"]))


def leading_plan(rows: Sequence[Row], leading: str) -> Row:
    """Of plans in one view, that of the leading GPU; where it does not fit there, the first that does.

    Args:
        rows: one at least, for example all of one precision.
        leading: the GPU of the answer's sentence.
    """
    return min(rows, key=lambda plan: (not plan["fits"], plan["gpu"] != leading))
