"""Policies and schedules between two precisions: the time of a run that is partly in each, as a mixture of two plans.

A schedule that trains a share of its steps in the higher precision takes that share of the higher plan's time and the
rest of the lower one's: both train the same tokens at the same batch. A policy that keeps some layers high is mixed by
the share of the parameters that are lowered, which is the share of the layers' matrix arithmetic. Both leave out what
changing over costs, and the memory is that of the higher plan.

Policies and schedules have fronts of their own: they are trained from different starts for different numbers of steps,
so that their losses cannot be held against each other. A point leaves the front only where another is surely better.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from math import hypot

from planner.answer.plan import Plan, Saving
from planner.answer.training_shown import MixturePoint
from planner.evidence import Estimate

TIME = "duration_days"


def mixed(high: Estimate, low: Estimate, low_share_ratio: float) -> Estimate:
    """A quantity of a run of which a share is in the lower precision; what is uncertain moves both plans alike.

    Args:
        high: of the plan in the higher precision.
        low: of the plan in the lower precision.
        low_share_ratio: share of the arithmetic or the steps that is in the lower one, 0..1.
    """
    share, rest = low_share_ratio, 1.0 - low_share_ratio
    return Estimate(
        low=share * low.low + rest * high.low, mid=share * low.mid + rest * high.mid,
        high=share * low.high + rest * high.high,
    )  # fmt: skip


def placed(
    points: Iterable[MixturePoint], plans: Iterable[Plan], savings: Iterable[Saving] = ()
) -> tuple[MixturePoint, ...]:
    """The points with the time of the plans, and which of them are on the front of their kind.

    Args:
        points: without time.
        plans: of one GPU, on the same GPUs; a point whose two precisions have no plan that fits stays without time.
        savings: between these plans: only where the lower one surely takes less time is it known to be sooner.
    """
    fitting = {plan.precision: plan for plan in plans if plan.fits}
    gpus = {plan.gpu for plan in fitting.values()}
    saved = {(row.from_, row.to): row for row in savings if row.metric == TIME and row.gpu in gpus}
    timed = tuple(_timed(point, fitting.get(point.high), fitting.get(point.precision)) for point in points)
    return tuple(
        replace(point, on_front=_on_front(point, timed, saved.get((point.high, point.precision)))) for point in timed
    )


def _timed(point: MixturePoint, high: Plan | None, low: Plan | None) -> MixturePoint:
    if high is None or low is None or high.duration_days is None or low.duration_days is None:
        return point
    assert high.gpu_hours is not None
    assert low.gpu_hours is not None
    share = point.low_share_ratio
    return replace(
        point,
        duration_days=mixed(high.duration_days, low.duration_days, share),
        gpu_hours=mixed(high.gpu_hours, low.gpu_hours, share),
    )


def _on_front(point: MixturePoint, others: Iterable[MixturePoint], saved: Saving | None) -> bool:
    """Whether none of the others is surely better; all in the higher precision is what they are held against."""
    if point.duration_days is None or point.loss_change is None:
        return False
    return point.name == "all_high" or not any(_better(other, point, saved) for other in others)


def _better(other: MixturePoint, point: MixturePoint, saved: Saving | None) -> bool:
    """Whether another point is not later and its loss surely lower, or surely sooner and its loss equal in the margin.

    The error of the difference of two changes is that of both together: all are held against the same runs, so that it
    is rather less.
    """
    if (other.kind, other.precision, other.steps) != (point.kind, point.precision, point.steps) or other is point:
        return False
    if other.loss_change is None or other.loss_range is None or point.loss_change is None or point.loss_range is None:
        return False  # an error that nobody knows excludes nothing
    above = other.loss_change - point.loss_change
    error = hypot(_half(other.loss_range), _half(point.loss_range))
    if other.low_share_ratio == point.low_share_ratio:
        return above + error < 0
    return _sooner(other, point, saved) and above + error <= point.margin


def _half(interval: Estimate) -> float:
    return max(interval.high - interval.mid, interval.mid - interval.low)


def _sooner(other: MixturePoint, point: MixturePoint, saved: Saving | None) -> bool:
    """Whether a point takes surely less time than another between the same two plans."""
    assert other.duration_days is not None  # both have the plans or neither
    assert point.duration_days is not None
    if saved is not None and saved.low <= 0 <= saved.high:
        return False
    return other.duration_days.mid < point.duration_days.mid
