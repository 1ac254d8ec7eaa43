"""Savings of each precision against every other one, draw by draw."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import permutations

import numpy as np

from planner.answer.plan import LOWER_IS_BETTER, Saving
from planner.evidence import Estimate
from planner.planning.ranges import Ranged

AMOUNT_OF = ("cost_usd", "gpu_hours")
"""Metrics whose saving is also given as an amount: money, and GPU-hours, which replace it where no price is known."""


def savings_between(view: str, gpu: str, results: tuple[Ranged, ...]) -> Iterator[Saving]:
    """Yield the savings of every ordered pair of precisions that fit, in every metric that both have.

    Args:
        view: `same_gpus` or `same_deadline`.
        gpu: the GPU of the results.
        results: one per precision, under the same draws.
    """
    fitting = [result for result in results if result.plan.fits]
    for base, target in permutations(fitting, 2):
        for metric in LOWER_IS_BETTER:
            saving = _saving(view, gpu, metric, base, target)
            if saving is not None:
                yield saving


def _saving(view: str, gpu: str, metric: str, base: Ranged, target: Ranged) -> Saving | None:
    """Return 1 - target/base at mid and in every draw; None where either is unknown or the base is 0."""
    before, after = getattr(base.plan, metric), getattr(target.plan, metric)
    if before is None or after is None or before.mid <= 0 or not np.all(base.draws[metric] > 0):
        return None  # a run of seconds costs less than a cent
    less = base.draws[metric] - target.draws[metric]
    ratio = Estimate.of_draws(less / base.draws[metric], mid=1.0 - after.mid / before.mid)
    amount = Estimate.of_draws(less, mid=before.mid - after.mid) if metric in AMOUNT_OF else None
    return Saving(
        view=view, gpu=gpu, metric=metric, from_=base.plan.precision, to=target.plan.precision,
        low=ratio.low, mid=ratio.mid, high=ratio.high, amount=amount,
    )  # fmt: skip
