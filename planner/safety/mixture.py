"""Policies and schedules between two precisions: the time of a run that uses both, as a mixture of two plans.

A schedule that trains a share of its steps in the higher precision takes that share of the time of the higher plan and
the rest of the time of the lower plan, since both train the same tokens at the same batch. A policy that keeps some
layers in high precision is mixed by the share of lowered parameters, which equals the share of the layers' matrix
arithmetic. Both leave out the cost of switching, and the memory is that of the higher plan.

Policies and schedules have separate Pareto fronts. They are trained from different starts for different numbers of
steps, so their losses are not comparable. A point leaves its front only if another point is certainly better.
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
    """Mix a quantity of two plans by share; uncertainty is assumed to move both plans alike.

    Args:
        high: the quantity of the plan in the higher precision.
        low: the quantity of the plan in the lower precision.
        low_share_ratio: share of the arithmetic or of the steps in the lower precision, 0..1.
    """
    low_share, high_share = low_share_ratio, 1.0 - low_share_ratio
    return Estimate(
        low=low_share * low.low + high_share * high.low, mid=low_share * low.mid + high_share * high.mid,
        high=low_share * low.high + high_share * high.high,
    )  # fmt: skip


def placed(
    points: Iterable[MixturePoint], plans: Iterable[Plan], savings: Iterable[Saving] = ()
) -> tuple[MixturePoint, ...]:
    """Add the time from the plans to the points, and mark those on the front of their kind.

    Args:
        points: points without time.
        plans: plans on the same GPUs of one type. A point stays without time if one of its two precisions has no plan
            that fits.
        savings: savings between these plans. The lower precision counts as faster only if it certainly saves time.
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
    """Whether no other point is certainly better. The all-high point is always on the front, as the reference."""
    if point.duration_days is None or point.loss_change is None:
        return False
    return point.name == "all_high" or not any(_better(other, point, saved) for other in others)


def _better(other: MixturePoint, point: MixturePoint, saved: Saving | None) -> bool:
    """Whether another point takes the same time with certainly lower loss, or is faster with loss within the margin.

    The error of the difference between two loss changes combines both errors. It overestimates the true error, because
    all changes are relative to the same runs.
    """
    if (other.kind, other.precision, other.steps) != (point.kind, point.precision, point.steps) or other is point:
        return False
    if other.loss_change is None or other.loss_range is None or point.loss_change is None or point.loss_range is None:
        return False  # an unknown error excludes nothing
    difference = other.loss_change - point.loss_change
    error = hypot(_half(other.loss_range), _half(point.loss_range))
    if other.low_share_ratio == point.low_share_ratio:
        return difference + error < 0
    return _sooner(other, point, saved) and difference + error <= point.margin


def _half(interval: Estimate) -> float:
    return max(interval.high - interval.mid, interval.mid - interval.low)


def _sooner(other: MixturePoint, point: MixturePoint, saved: Saving | None) -> bool:
    """Whether `other` certainly takes less time than `point`; both lie between the same two plans."""
    assert other.duration_days is not None  # either both points have plans or neither
    assert point.duration_days is not None
    if saved is not None and saved.low <= 0 <= saved.high:
        return False
    return other.duration_days.mid < point.duration_days.mid
