"""The next numbers of GPUs, below and above one that has no plan, that have a plan."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from planner.lazy import dataclass
from planner.parallelism.layout import Layouts
from planner.parallelism.search import FixedLayout, enumerate_layouts
from planner.planning.case import Case
from planner.planning.choice import AT_ONCE, Choice, choose_each
from planner.planning.risk import WORTH_TRYING, risk_of
from planner.planning.targets import MAX_GPUS

MOST_STEPS = 64
"""Number of steps on each side that are all considered; beyond them, only the numbers that a search takes."""
FAR_MORE = 2
"""A number that holds a plan at a small risk is named if the next safe number is more than this many times as large."""
MOST_RATIO = 16
"""Factor over a number up to which a larger one is considered."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """A number of GPUs that holds a plan."""

    gpus: int
    risk: float | None = None
    """Probability of running out of memory; None where the plan is safe."""


def next_below(case: Case, fixed: FixedLayout, gpus: int) -> int | None:
    """Return the most GPUs below a number that hold a plan safely, in whole nodes or within one; None if none do."""
    node = 1 if case.cluster.sized_by_number else case.cluster.gpus_per_node
    step = node if gpus > node else 1
    near = [count for count in range(-(-gpus // step) * step - step, 0, -step)[:MOST_STEPS] if count < gpus]
    choices = _choices(_layouts(case, fixed, near, (1, min(near, default=1) - 1)), nearest=-1)
    return next((choice.gpus for _, choice in choices if choice.safe), None)


def next_above(case: Case, fixed: FixedLayout, gpus: int, most: int) -> Held | None:
    """Return the fewest GPUs above a number, at most `most`, that hold a plan safely; None where none do.

    Fewer GPUs that hold a plan at a risk worth a try are returned where the safe number is far larger, or none is safe.
    """
    node = 1 if case.cluster.sized_by_number else case.cluster.gpus_per_node
    parts = range(gpus + 1, node)
    whole = range(gpus // node * node + node, most + 1, node)[:MOST_STEPS]
    near = [count for count in (*parts, *whole) if count <= most]
    risky: Held | None = None
    far = max(near, default=most) + 1, min(most, MOST_RATIO * gpus)
    for own, choice in _choices(_layouts(case, fixed, near, far)):
        if risky is not None and choice.gpus > FAR_MORE * risky.gpus:
            break
        if choice.safe:
            return Held(gpus=choice.gpus)
        risk = risk_of(own, choice.winner) if risky is None else 1.0
        if risk <= WORTH_TRYING:
            risky = Held(gpus=choice.gpus, risk=risk)
    return risky


def fewest_safe(case: Case, fixed: FixedLayout) -> int | None:
    """Return the fewest GPUs, of the numbers that a search takes, that hold a plan safely; None where none do."""
    layouts = enumerate_layouts(case.recipe, case.cluster, fixed, gpus_between=(1, MAX_GPUS))
    return next((choice.gpus for _, choice in _choices(iter([(case, layouts)])) if choice.safe), None)


def _layouts(case: Case, fixed: FixedLayout, near: list[int], far: tuple[int, int]) -> Iterator[tuple[Case, Layouts]]:
    """Yield all layouts on the numbers of GPUs that are near, then those of the far range that a search takes.

    The number of cards decides which machines they are in, so each number has a case of its own.
    """
    for counts in [[count] for count in near] if case.cluster.sized_by_number else [near]:
        own = case.on(counts[0]) if counts else case
        yield own, enumerate_layouts(own.recipe, own.cluster, fixed, gpus=np.array(counts, dtype=np.int64))
    if far[0] <= far[1]:
        own = case.elsewhere
        yield own, enumerate_layouts(own.recipe, own.cluster, fixed, gpus_between=far)


def _choices(several: Iterator[tuple[Case, Layouts]], nearest: int = 1) -> Iterator[tuple[Case, Choice]]:
    """Yield the best layout on each number of GPUs where one fits, in rising order, or falling for `nearest` -1."""
    for case, layouts in several:
        scores = case.score(layouts)
        fits = case.fits(scores)
        counts = sorted(set(layouts.gpus[fits].tolist()))[::nearest]
        for start in range(0, len(counts), AT_ONCE):
            groups = [np.flatnonzero(fits & (layouts.gpus == count)) for count in counts[start : start + AT_ONCE]]
            chosen = choose_each(case, layouts, scores, groups, len(layouts))
            yield from ((case, choice) for choice in chosen if choice.best is not None)
