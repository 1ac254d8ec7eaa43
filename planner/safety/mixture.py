"""Policies and schedules between two precisions: the time of a run that is partly in each, as a mixture of two plans.

A schedule that trains a share of its steps in the higher precision takes that share of the higher plan's time and the
rest of the lower one's: both train the same tokens at the same batch. A policy that keeps some layers high is mixed by
the share of the parameters that are lowered, which is the share of the layers' matrix arithmetic. Both leave out what
changing over costs, and the memory is that of the higher plan.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from planner.answer.plan import Plan
from planner.answer.training_shown import MixturePoint


def mixed(high: float, low: float, low_share_ratio: float) -> float:
    """A quantity of a run of which a share is in the lower precision.

    Args:
        high: of the plan in the higher precision.
        low: of the plan in the lower precision.
        low_share_ratio: share of the arithmetic or the steps that is in the lower one, 0..1.
    """
    return low_share_ratio * low + (1.0 - low_share_ratio) * high


def placed(points: Iterable[MixturePoint], plans: Iterable[Plan]) -> tuple[MixturePoint, ...]:
    """The points with the time of the plans, and which of them are on the front of loss against time.

    Args:
        points: without time.
        plans: of one GPU, on the same GPUs; a point whose two precisions have no plan that fits stays without time.
    """
    fitting = {plan.precision: plan for plan in plans if plan.fits}
    timed = tuple(_timed(point, fitting.get(point.high), fitting.get(point.precision)) for point in points)
    return tuple(replace(point, on_front=_on_front(point, timed)) for point in timed)


def _timed(point: MixturePoint, high: Plan | None, low: Plan | None) -> MixturePoint:
    if high is None or low is None or high.duration_days is None or low.duration_days is None:
        return point
    assert high.gpu_hours is not None
    assert low.gpu_hours is not None
    share = point.low_share_ratio
    return replace(
        point,
        duration_days=mixed(high.duration_days.mid, low.duration_days.mid, share),
        gpu_hours=mixed(high.gpu_hours.mid, low.gpu_hours.mid, share),
    )


def _on_front(point: MixturePoint, others: Iterable[MixturePoint]) -> bool:
    """Whether none of the others is as good in both and better in one."""
    if point.duration_days is None:
        return False
    own = (point.duration_days, point.loss_change)
    for other in others:
        if other.duration_days is None:
            continue
        theirs = (other.duration_days, other.loss_change)
        if theirs != own and theirs[0] <= own[0] and theirs[1] <= own[1]:
            return False
    return True
