"""A plan that is far dearer than those on other numbers of GPUs: which number mends that."""

from __future__ import annotations

from collections.abc import Sequence

from planner.answer.plan import CurvePoint, Plan
from planner.errors import Message
from planner.planning.case import Case
from planner.planning.curve import points_on
from planner.planning.targets import targets_of
from planner.question.question import Question
from planner.rates.terms import Draws

FAR_DEARER = 2.0
"""Cost of a plan over that on other GPUs from which on it is not to be taken as it is."""
AS_CHEAP = 2.0
"""How much dearer than the cheapest a number of GPUs may be to be named because it is closer."""
STEPS = (1, -1, 2, -2, 4, -4)
"""Sixteenths of a plan's nodes, or nodes where it has fewer, by which other numbers that are looked at differ."""


def far_dearer(
    question: Question, case: Case, plan: Plan, curve: Sequence[CurvePoint], draws: Draws
) -> tuple[Message, ...]:
    """That another number of GPUs, close by if there is such, costs less than half of a plan; nothing if none does.

    Args:
        question: what was asked.
        case: the asked precision on one kind of GPU.
        plan: its plan, which fits.
        curve: the same on more and fewer GPUs.
        draws: the common draws.
    """
    cheap = [point for point in curve if _is_allowed(point) and _share(point, plan) * FAR_DEARER <= 1.0]
    if not cheap:
        return ()
    targets, node = targets_of(question), case.cluster.gpus_per_node
    step = max(1, plan.nodes // 16) * node
    counts = [plan.nodes * node + steps * step for steps in STEPS]
    counts = [count for count in counts if node <= count <= targets.most_gpus]
    near = [point for point in points_on(case, question.fixed, counts, targets, draws) if _is_allowed(point)]
    most = AS_CHEAP * min(_share(point, plan) for point in (*cheap, *near))
    able = [point for point in (*cheap, *near) if _share(point, plan) <= most]
    best = min(able, key=lambda point: (abs(point.gpus - plan.gpus), point.gpus))
    assert plan.duration_days is not None
    key = "warning.far_dearer_hours" if best.cost_usd is None else "warning.far_dearer"
    message = Message.of(
        key, gpu=plan.gpu, planned=plan.gpus, gpus=best.gpus, share=_share(best, plan), days=best.duration_days.mid,
        planned_days=plan.duration_days.mid,
    )  # fmt: skip
    return (message,)


def _is_allowed(point: CurvePoint) -> bool:
    """Whether a point is another plan that misses no target."""
    return not point.chosen and point.in_time is not False and point.in_budget is not False


def _share(point: CurvePoint, plan: Plan) -> float:
    """Cost of a point over that of a plan at mid, or their GPU-hours where no price is known."""
    if point.cost_usd is not None and plan.cost_usd is not None and plan.cost_usd.mid > 0:
        return point.cost_usd.mid / plan.cost_usd.mid
    assert plan.duration_days is not None
    return point.gpus * point.duration_days.mid / (plan.gpus * plan.duration_days.mid)
