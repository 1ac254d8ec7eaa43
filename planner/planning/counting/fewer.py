"""Fewer GPUs than the fewest round numbers that meet a deadline: split as the best near them, or looked at closer."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from planner.parallelism.layout import Layouts
from planner.parallelism.search import enumerate_layouts
from planner.planning.choice import Choice, best_given
from planner.planning.counting.search import CountSearch

Floats = npt.NDArray[np.float64]

MOST_SPLITS = 3
"""Ways to split the model whose other numbers of GPUs are looked at: those that take the fewest GPU-hours."""
NEAR_LEAST = 1.1
"""How many GPU-hours more than the least of all they may take."""
LEAST_SHARE = 0.75
"""GPU-hours on fewer GPUs over those of the plan, at the least."""
MOST_COUNTS = 64
"""Numbers of GPUs of one such split, the largest of those that are fewer."""
HARDLY_MISSED = 1.02
"""How far a duration may miss the deadline for its number of GPUs to be looked at again, with all layouts."""
EXACT = 1.0
"""Layouts that are split alike stay as far from their mid as the one that was evaluated last."""


def fewer(search: CountSearch, enough: Choice, layouts: Layouts, wall_s: Floats) -> Choice:
    """The choice on the fewest GPUs below those of one that meets the deadline, where there are such; else that one.

    Args:
        search: with a deadline; without one, nothing is looked for.
        enough: what meets the targets on the fewest round numbers of GPUs.
        layouts: those that fit around it.
        wall_s: how long each takes at mid, `[layout]`.
    """
    if search.targets.deadline_s is None or search.case.recipe.batch_band is None:
        return enough
    least = _least_gpus(search, enough)
    alike = [_split_as(search, enough, split, least) for split in _splits(layouts, wall_s)]
    layouts = Layouts.joined([some for some in alike if some is not None])
    if len(layouts):
        scores, fits = search.look(layouts)
        enough = search.first_met(layouts, scores, fits, EXACT)[0] or enough
    return _again(search, enough)


def _least_gpus(search: CountSearch, enough: Choice) -> int:
    """Fewer could meet the deadline only with far fewer GPU-hours."""
    assert search.targets.deadline_s is not None
    share = search.walls_s.get(enough.gpus, search.targets.deadline_s) / search.targets.deadline_s
    return math.ceil(LEAST_SHARE * share * enough.gpus)


def _splits(layouts: Layouts, wall_s: Floats) -> Iterator[tuple[int, int, int]]:
    """Tensor, context and pipeline parallel sizes of the layouts with the fewest GPU-hours, the best first."""
    gpu_s = layouts.gpus * wall_s
    order = np.argsort(gpu_s, kind="stable")
    order = order[gpu_s[order] <= NEAR_LEAST * gpu_s.min(initial=math.inf)]
    splits = zip(layouts.tp[order].tolist(), layouts.cp[order].tolist(), layouts.pp[order].tolist(), strict=True)
    yield from list(dict.fromkeys(splits))[:MOST_SPLITS]


def _split_as(search: CountSearch, enough: Choice, split: tuple[int, int, int], least: int) -> Layouts | None:
    """Layouts on fewer GPUs that split the model in one way; None where there are no such numbers of GPUs."""
    tp, cp, pp = split
    step = math.lcm(tp * cp * pp, search.case.cluster.gpus_per_node)
    counts = np.arange(-(-least // step) * step, enough.gpus, step, dtype=np.int64)[-MOST_COUNTS:]
    counts = counts[~np.isin(counts, list(search.walls_s))]
    if not len(counts):
        return None
    fixed = replace(search.fixed, tp=tp, cp=cp, pp=pp)
    return enumerate_layouts(search.case.recipe, search.case.cluster, fixed, gpus=counts)


def _again(search: CountSearch, enough: Choice) -> Choice:
    """Fewer GPUs that hardly missed the deadline, with all layouts that a number of GPUs has once it is given."""
    assert search.targets.deadline_s is not None
    most_s = HARDLY_MISSED * search.targets.deadline_s
    near = {wall_s: gpus for gpus, wall_s in search.walls_s.items() if gpus < enough.gpus and wall_s <= most_s}
    if not near:
        return enough
    again = best_given(search.case, search.fixed, near[min(near)])
    return again if again.best is not None and again.safe and search.meets(again) else enough
