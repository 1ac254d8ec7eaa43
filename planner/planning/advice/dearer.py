"""Name a better number of GPUs where the plan on the given one costs clearly more than one close by, or far more."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from planner.answer.plan import CurvePoint, Plan
from planner.errors import Message
from planner.planning.case import Case
from planner.planning.curve import points_on
from planner.planning.targets import targets_of
from planner.question.question import Question
from planner.rates.terms import Draws

FAR_DEARER = 2.0
"""Ratio of a plan's cost to that on other GPUs from which the plan should not be taken as it is."""
AS_CHEAP = 2.0
"""Factor over the cheapest cost up to which a number of GPUs is named because it is closer to the plan's."""
CLOSE = 1.25
"""Largest factor between a plan's number of GPUs and one that is close by."""
CHEAPER = 0.05
"""Least share of the cost that a number of GPUs close by must save to be named."""
EQUALLY_CHEAP = 0.02
"""Share of the cost by which the cheapest number of GPUs may be cheaper than a closer one that is named."""
LATER_AT_MOST = 1.1
"""Largest ratio of the time on fewer GPUs to the plan's: beyond it, saving money is a matter of choice, which the curve
shows."""
SAME_TIME = 0.015
"""Relative difference below which two times are called about the same."""
LEAST_USD = 1.0
"""Least cost of two plans whose costs are compared: bills are rounded to cents."""
STEPS = (1, -1, 2, -2, 4, -4)
"""By how many steps the other numbers of GPUs differ from the plan's. A step is a sixteenth of the plan's nodes, and at
least one node."""


def far_dearer(
    question: Question, case: Case, plan: Plan, curve: Sequence[CurvePoint], draws: Draws
) -> tuple[Message, ...]:
    """Return a warning that another number of GPUs, if possible close by, costs less than half; empty if none does.

    Args:
        question: the question.
        case: the requested precision on one kind of GPU.
        plan: its plan, which fits.
        curve: its curve over more and fewer GPUs.
        draws: the common draws.
    """
    cheap = [point for point in curve if _is_allowed(point) and cost_share(point, plan) * FAR_DEARER <= 1.0]
    if not cheap:
        return ()
    targets, node = targets_of(question), case.cluster.gpus_per_node
    step = max(1, plan.nodes // 16) * node
    counts = [plan.nodes * node + steps * step for steps in STEPS]
    counts = [count for count in counts if node <= count <= targets.most_gpus]
    near = [point for point in points_on(case, question.fixed, counts, targets, draws) if _is_allowed(point)]
    most = AS_CHEAP * min(cost_share(point, plan) for point in (*cheap, *near))
    able = [point for point in (*cheap, *near) if cost_share(point, plan) <= most]
    best = min(able, key=lambda point: (abs(point.gpus - plan.gpus), point.gpus))
    assert plan.duration_days is not None
    key = "warning.far_dearer" if has_costs(best, plan) else "warning.far_dearer_hours"
    message = Message.of(
        key, gpu=plan.gpu, planned=plan.gpus, gpus=best.gpus, share=cost_share(best, plan), days=best.duration_days.mid,
        planned_days=plan.duration_days.mid,
    )  # fmt: skip
    return (message,)


def cheaper_close_by(plan: Plan, points: Iterable[CurvePoint], most_gpus: float) -> Iterator[Message]:
    """Yield a message that a number of GPUs close to a plan's costs clearly less; nothing where `far_dearer` warns.

    Args:
        plan: a plan on a given number of GPUs, which fits.
        points: its curve over more and fewer GPUs, of one kind.
        most_gpus: the most GPUs that a plan may use.
    """
    able = [point for point in points if _is_allowed(point) and point.gpus <= most_gpus]
    near = [point for point in able if plan.gpus / CLOSE <= point.gpus <= plan.gpus * CLOSE and _is_soon(point, plan)]
    least = min((cost_share(point, plan) for point in near), default=1.0)
    if least > 1.0 - CHEAPER or any(cost_share(point, plan) * FAR_DEARER <= 1.0 for point in able):
        return
    most = min(least + EQUALLY_CHEAP, 1.0 - CHEAPER)
    best = min(
        (point for point in near if cost_share(point, plan) <= most),
        key=lambda point: (abs(point.gpus - plan.gpus), point.gpus),
    )
    assert plan.duration_days is not None
    key = "warning.cheaper_near" if has_costs(best, plan) else "warning.cheaper_near_hours"
    yield Message.of(
        key, gpu=plan.gpu, planned=plan.gpus, gpus=best.gpus, saved=1.0 - cost_share(best, plan),
        time=_time(best.duration_days.mid, plan.duration_days.mid),
    )  # fmt: skip


def _time(days: float, planned_days: float) -> Message:
    if abs(days / planned_days - 1.0) < SAME_TIME:
        return Message.of("warning.same_time")
    return Message.of("warning.other_time", days=days, planned_days=planned_days)


def _is_soon(point: CurvePoint, plan: Plan) -> bool:
    assert plan.duration_days is not None
    return point.duration_days.mid <= LATER_AT_MOST * plan.duration_days.mid


def unrepeated(advice: Iterable[Message], urgent: Iterable[Message]) -> tuple[Message, ...]:
    """Return the advice without a faster plan on fewer GPUs whose number an urgent warning on that GPU names."""
    named = {(dict(message.values).get("gpu"), dict(message.values).get("gpus")) for message in urgent}

    def repeats(message: Message) -> bool:
        values = dict(message.values)
        return message.key == "warning.fewer_gpus" and (values["gpu"], values["fewer"]) in named

    return tuple(message for message in advice if not repeats(message))


def _is_allowed(point: CurvePoint) -> bool:
    """Return whether a point is another plan that misses no target."""
    return not point.chosen and point.in_time is not False and point.in_budget is not False


def has_costs(point: CurvePoint, plan: Plan) -> bool:
    """Return whether the costs of a point and a plan are known and so many cents that their ratio means something."""
    return all(cost is not None and cost.mid >= LEAST_USD for cost in (point.cost_usd, plan.cost_usd))


def cost_share(point: CurvePoint, plan: Plan) -> float:
    """Return the cost of a point over that of a plan at mid, or the ratio of GPU-hours unless both costs are known."""
    if has_costs(point, plan):
        assert point.cost_usd is not None
        assert plan.cost_usd is not None
        return point.cost_usd.mid / plan.cost_usd.mid
    assert plan.duration_days is not None
    return point.gpus * point.duration_days.mid / (plan.gpus * plan.duration_days.mid)
