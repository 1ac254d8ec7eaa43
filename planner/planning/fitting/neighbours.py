"""The next numbers of GPUs that have a plan, below and above one that has none."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from planner.parallelism.layout import Layouts
from planner.parallelism.search import FixedLayout, enumerate_layouts
from planner.planning.case import Case
from planner.planning.choice import AT_ONCE, choose_each
from planner.planning.targets import MAX_GPUS

MOST_STEPS = 64
"""Steps on each side that are all looked at; beyond them only the numbers that a search takes."""
MOST_RATIO = 16
"""How far above a number another is looked for."""


def next_below(case: Case, fixed: FixedLayout, gpus: int) -> int | None:
    """The most GPUs below a number that hold a plan safely, whole nodes or fewer than one; None where none do."""
    node = case.cluster.gpus_per_node
    step = node if gpus > node else 1
    near = [count for count in range(-(-gpus // step) * step - step, 0, -step)[:MOST_STEPS] if count < gpus]
    return _first_safe(case, _layouts(case, fixed, near, (1, min(near, default=1) - 1)), nearest=-1)


def next_above(case: Case, fixed: FixedLayout, gpus: int, most: int) -> int | None:
    """The fewest GPUs above a number, at most `most`, that hold a plan safely; None where none do."""
    node = case.cluster.gpus_per_node
    parts = range(gpus + 1, node)
    whole = range(gpus // node * node + node, most + 1, node)[:MOST_STEPS]
    near = [count for count in (*parts, *whole) if count <= most]
    return _first_safe(case, _layouts(case, fixed, near, (max(near, default=most) + 1, min(most, MOST_RATIO * gpus))))


def fewest_safe(case: Case, fixed: FixedLayout) -> int | None:
    """The fewest GPUs of those that a search takes that hold a plan safely; None where none do."""
    return _first_safe(case, iter([enumerate_layouts(case.recipe, case.cluster, fixed, gpus_between=(1, MAX_GPUS))]))


def _layouts(case: Case, fixed: FixedLayout, near: list[int], far: tuple[int, int]) -> Iterator[Layouts]:
    """All layouts on the numbers of GPUs that are near, then those of a range that a search takes."""
    yield enumerate_layouts(case.recipe, case.cluster, fixed, gpus=np.array(near, dtype=np.int64))
    if far[0] <= far[1]:
        yield enumerate_layouts(case.recipe, case.cluster, fixed, gpus_between=far)


def _first_safe(case: Case, several: Iterator[Layouts], nearest: int = 1) -> int | None:
    """The first number of GPUs with a safe layout, in rising order, or with `nearest` -1 in falling order."""
    for layouts in several:
        scores = case.score(layouts)
        fits = case.fits(scores)
        counts = sorted(set(layouts.gpus[fits].tolist()))[::nearest]
        for start in range(0, len(counts), AT_ONCE):
            groups = [np.flatnonzero(fits & (layouts.gpus == count)) for count in counts[start : start + AT_ONCE]]
            for choice in choose_each(case, layouts, scores, groups, len(layouts)):
                if choice.safe:
                    return choice.gpus
    return None
