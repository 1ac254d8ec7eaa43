"""Look for fewer GPUs than the fewest round number that meets a deadline: by the best splits, or by all layouts."""

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
"""Number of splits of the model that are tried on other numbers of GPUs: those that take the fewest GPU-hours."""
NEAR_LEAST = 1.1
"""A split is tried only if its GPU-hours are within this factor of the fewest."""
LEAST_SHARE = 0.75
"""Lower bound on the ratio of GPU-hours on fewer GPUs to those of the plan."""
MOST_COUNTS = 64
"""Number of GPU counts tried with one split: the largest ones below the plan's."""
HARDLY_MISSED = 1.02
"""A count of GPUs is tried again with all layouts if its duration is within this factor of the deadline."""
EXACT = 1.0
"""Slack for layouts with the same split: their figures under draws have the same ratio to mid as those of the layout
that was evaluated last."""


def fewer(search: CountSearch, enough: Choice, layouts: Layouts, wall_s: Floats) -> Choice:
    """Return the choice on the fewest GPUs below those of `enough` that meets the deadline, else `enough` itself.

    Args:
        search: with a deadline; without one, or with a given batch, nothing is tried.
        enough: the choice that meets the targets on the fewest round number of GPUs.
        layouts: the layouts around it that fit.
        wall_s: duration of each at mid, `[layout]`.
    """
    if search.targets.deadline_s is None or search.case.recipe.batch_band is None:
        return enough
    least = least_gpus(search, enough)
    same_splits = [_split_as(search, enough, split, least) for split in _splits(layouts, wall_s)]
    layouts = Layouts.joined([same_split for same_split in same_splits if same_split is not None])
    if len(layouts):
        scores, fits = search.score(layouts)
        enough = search.first_met(layouts, scores, fits, EXACT)[0] or enough
    return _retry_all_layouts(search, enough)


def least_gpus(search: CountSearch, enough: Choice) -> int:
    """Return the number of GPUs below which only far fewer GPU-hours would meet the deadline."""
    assert search.targets.deadline_s is not None
    share = search.wall_s_by_gpus.get(enough.gpus, search.targets.deadline_s) / search.targets.deadline_s
    return math.ceil(LEAST_SHARE * share * enough.gpus)


def _splits(layouts: Layouts, wall_s: Floats) -> Iterator[tuple[int, int, int]]:
    """Yield tensor, context and pipeline parallel sizes of the layouts with the fewest GPU-hours, the best first."""
    gpu_s = layouts.gpus * wall_s
    order = np.argsort(gpu_s, kind="stable")
    order = order[gpu_s[order] <= NEAR_LEAST * gpu_s.min(initial=math.inf)]
    splits = zip(layouts.tp[order].tolist(), layouts.cp[order].tolist(), layouts.pp[order].tolist(), strict=True)
    yield from list(dict.fromkeys(splits))[:MOST_SPLITS]


def _split_as(search: CountSearch, enough: Choice, split: tuple[int, int, int], least: int) -> Layouts | None:
    """Return the layouts on fewer GPUs that split the model in one way; None where no such number of GPUs is left."""
    tp, cp, pp = split
    step = math.lcm(tp * cp * pp, search.case.cluster.gpus_per_node)
    counts = np.arange(-(-least // step) * step, enough.gpus, step, dtype=np.int64)[-MOST_COUNTS:]
    counts = counts[~np.isin(counts, list(search.wall_s_by_gpus))]
    if not len(counts):
        return None
    fixed = replace(search.fixed, tp=tp, cp=cp, pp=pp)
    return enumerate_layouts(search.case.recipe, search.case.cluster, fixed, gpus=counts)


def _retry_all_layouts(search: CountSearch, enough: Choice) -> Choice:
    """Try all layouts of a given number on the fastest smaller number of GPUs that just missed the deadline."""
    assert search.targets.deadline_s is not None
    most_s = HARDLY_MISSED * search.targets.deadline_s
    just_missed = {
        wall_s: gpus for gpus, wall_s in search.wall_s_by_gpus.items() if gpus < enough.gpus and wall_s <= most_s
    }
    if not just_missed:
        return enough
    retried = best_given(search.case, search.fixed, just_missed[min(just_missed)])
    return retried if retried.best is not None and retried.safe and search.meets(retried) else enough
