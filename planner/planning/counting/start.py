"""Where a search over GPU counts starts: what the deadline needs at least, and what probably meets it."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from planner.evidence import median
from planner.lazy import dataclass
from planner.parallelism.layout import Layouts
from planner.parallelism.search import enumerate_layouts
from planner.performance.evaluation import flop_of, peak_bytes_of, step_of, tokens_per_step
from planner.performance.memory import usable_bytes
from planner.planning.choice import LEAN
from planner.planning.counting.search import CountSearch
from planner.planning.targets import at_confidence

DEADLINE_WINDOW = 1.5
"""Ratio of the most to the fewest GPUs of a range that is searched with a deadline."""
BEST_MFU = 0.85
"""Share of the dense peak that no plan exceeds."""
MANY_NODES = 8
"""Number of nodes up to which every number of nodes is considered."""
SCANNED = 1.13
"""Ratio of the most to the fewest GPUs whose layouts show how fast the fastest is; it spans one or two round numbers. A
given batch divides over fewer of them, so a wider range is used for it."""
FASTER_EACH = 0.85
"""Lower bound on the ratio of a run's GPU-hours on more GPUs to those on fewer, if memory were no limit."""
FASTER_THAN_LEAN = 0.9
"""The search starts at this share of the GPUs that the fastest lean layout (`LEAN`) needs: a safe layout may fill more
of the memory and be faster. Lower numbers are searched only if nothing from there on is in time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """Numbers of GPUs that tell a search with a deadline where to begin."""

    least: int
    """A number below which the deadline cannot be met; 1 without a deadline."""
    likely: int
    """Slightly fewer than probably meet the deadline at the confidence; not below `least`."""


def start_of(search: CountSearch) -> Start:
    """Return where to begin a search for the fewest GPUs, and set `search.wall_ratio`.

    The least number is what the run needs at the dense peak. Where that is large, it is the number needed at the speed
    of the fastest layout on little more than that many GPUs, whether or not that layout fits: more GPUs are not
    markedly faster each. The likely number follows from what the fastest lean one of them needs under the draws.
    """
    case, deadline_s = search.case, search.targets.deadline_s
    if deadline_s is None:
        return Start(least=1, likely=1)
    peak = case.cluster.gpu.peak_flop_per_s[case.policy.linear_compute]
    least = math.floor(case.tokens * flop_of(case.recipe) / deadline_s / (BEST_MFU * peak))
    if least <= MANY_NODES * case.cluster.gpus_per_node or least > search.targets.most_gpus:
        return Start(least=least, likely=least)
    window = least, (DEADLINE_WINDOW if case.recipe.batch_band is None else SCANNED) * least
    at = enumerate_layouts(case.recipe, case.cluster, search.fixed, gpus_between=window)
    if not len(at):
        return Start(least=least, likely=least)
    step_s = np.asarray(step_of(case.recipe, case.cluster, at, 0.0, case.mid).total)
    gpu_s = case.tokens * at.gpus * step_s / tokens_per_step(case.recipe, at)
    least = max(least, math.floor(FASTER_EACH * float(gpu_s.min()) * search.wall_ratio / deadline_s))
    if case.recipe.batch_band is None:  # few numbers divide a given batch, so the next one may take much longer
        return Start(least=least, likely=least)
    return Start(least=least, likely=max(least, _likely(search, at, gpu_s, deadline_s)))


def _likely(search: CountSearch, layouts: Layouts, gpu_s: npt.NDArray[np.float64], deadline_s: float) -> int:
    """Return about the number of GPUs that a safe plan needs at the confidence; 0 where no layout is lean.

    The fastest lean layout is evaluated under the draws, which sets `search.wall_ratio`.
    """
    case = search.case
    bytes_at_mid = np.asarray(peak_bytes_of(case.recipe, layouts, case.mid))
    fitting = np.flatnonzero(bytes_at_mid <= LEAN * usable_bytes(case.cluster.gpu))
    if not len(fitting):
        return 0
    layout = layouts.only(int(fitting[gpu_s[fitting].argmin()]))
    wall_s = np.asarray(case.evaluate(layout, search.draws).wall_s)
    at_confidence_s = at_confidence(wall_s, search.targets.confidence_ratio)
    search.wall_ratio = at_confidence_s / median(wall_s)
    return math.floor(FASTER_THAN_LEAN * int(layout.gpus[0]) * at_confidence_s / deadline_s)
