"""How many GPUs, and in which layout: the fastest that fits on N GPUs, or the fewest whole nodes that meet a target."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from planner.case import Case
from planner.errors import NoPlanError
from planner.evaluation import Score
from planner.layout import Layouts
from planner.operations import model_flop_per_token
from planner.rates import Draws
from planner.search import FixedLayout, enumerate_layouts
from planner.units import DAY_S, GIB

MAX_GPUS = 1 << 20
"""No search goes beyond a million GPUs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """The winner of a search among `layouts`, or why there is none."""

    layouts: Layouts
    scores: Score
    best: int | None
    """Index of the winner; None where nothing fits."""
    evaluated: int

    @property
    def winner(self) -> Layouts:
        """The winning layout as columns of length 1."""
        assert self.best is not None
        return self.layouts.take(slice(self.best, self.best + 1))


def best_on(case: Case, fixed: FixedLayout, gpus: int) -> Choice:
    """The fastest layout that fits on exactly `gpus` GPUs."""
    layouts = enumerate_layouts(case.recipe, case.cluster, fixed, gpus=gpus)
    scores = case.score(layouts)
    fits = np.flatnonzero(scores.memory_bytes <= case.cluster.gpu.memory_bytes)
    best = int(fits[np.argmin(scores.step_s[fits])]) if len(fits) else None
    return Choice(layouts=layouts, scores=scores, best=best, evaluated=len(layouts))


def _windows(case: Case, deadline_s: float | None) -> Iterator[tuple[float, float]]:
    """Ranges of GPU counts to look at, from the fewest that could meet the deadline at peak rate."""
    low = 1.0
    if deadline_s is not None:
        flop = case.tokens * model_flop_per_token(case.recipe.model, case.recipe.seq_len)
        peak = case.cluster.gpu.peak_flop_per_s[case.policy.linear_compute]
        low = max(1.0, flop / deadline_s / peak / (1.0 if case.recipe.trains_all else 2.0))
    while low <= MAX_GPUS:
        high = max(low * 3.0, 8.0 * case.cluster.gpus_per_node)
        yield low, high
        low = high + 1


def _targets_met(case: Case, scores: Score, deadline_s: float | None, budget_usd: float | None) -> np.ndarray:
    met = scores.memory_bytes <= case.cluster.gpu.memory_bytes
    if deadline_s is not None:
        met &= scores.wall_s <= deadline_s * 1.02  # the mid of the draws decides, below
    if budget_usd is not None:
        met &= scores.cost_usd <= budget_usd * 1.02
    return met


def fewest(
    case: Case, fixed: FixedLayout, draws: Draws, *, deadline_s: float | None = None, budget_usd: float | None = None
) -> Choice:
    """The fastest layout on the fewest whole nodes whose mid duration and cost meet the targets.

    Raises:
        NoPlanError: no number of GPUs does; says by how much, and what would fit.
    """
    closest: tuple[float, int] | None = None
    smallest: float | None = None
    evaluated = 0
    for window in _windows(case, deadline_s):
        layouts = enumerate_layouts(case.recipe, case.cluster, fixed, gpus_between=window)
        if not len(layouts):
            if evaluated:
                break
            continue
        scores = case.score(layouts)
        evaluated += len(layouts)
        fits = scores.memory_bytes <= case.cluster.gpu.memory_bytes
        smallest = min(smallest or np.inf, float(scores.memory_bytes.min()))
        if fits.any():
            wall = np.where(fits, scores.wall_s if deadline_s is not None else scores.cost_usd, np.inf)
            at = int(np.argmin(wall))
            if closest is None or wall[at] < closest[0]:
                closest = (float(wall[at]), int(layouts.gpus[at]))
        met = _targets_met(case, scores, deadline_s, budget_usd)
        gpus = layouts.gpus
        for count in np.unique(gpus[met])[:12]:
            among = np.flatnonzero(met & (gpus == count))
            best = int(among[np.argmin(scores.step_s[among])])
            choice = Choice(layouts=layouts, scores=scores, best=best, evaluated=evaluated)
            if _mid_meets(case, choice, draws, deadline_s, budget_usd):
                return choice
        if closest is not None and budget_usd is not None and deadline_s is None and window[0] > 4096:
            break  # more GPUs only add cost
    raise _nothing(case, closest, smallest, deadline_s, budget_usd)


def _mid_meets(
    case: Case, choice: Choice, draws: Draws, deadline_s: float | None, budget_usd: float | None
) -> bool:
    drawn = case.evaluate(choice.winner, draws)
    in_time = deadline_s is None or float(np.median(drawn.wall_s)) <= deadline_s
    in_budget = budget_usd is None or float(np.median(drawn.cost_usd)) <= budget_usd
    return in_time and in_budget


def _nothing(
    case: Case, closest: tuple[float, int] | None, smallest: float | None, deadline_s: float | None, budget_usd: float | None
) -> NoPlanError:
    name, gpu = case.policy.precision, case.cluster.gpu
    if closest is None:
        need = (smallest or 0.0) / GIB
        room = gpu.memory_bytes / GIB
        return NoPlanError(
            f"{name} does not fit on {gpu.id} in any layout: the leanest needs {need:.1f} GiB per GPU, "
            f"{need - room:.1f} GiB more than its {room:.1f} GiB",
            hint="a larger global batch allows more GPUs; or --act-ckpt full, --zero 3, a GPU with more memory",
        )
    value, gpus = closest
    if deadline_s is not None:
        return NoPlanError(
            f"no number of {gpu.id} finishes {name} in {deadline_s / DAY_S:.3g} days: "
            f"the fastest takes {value / DAY_S:.3g} days on {gpus} GPUs",
            hint=f"allow `--deadline {value / DAY_S * 1.05:.2g}d`, or raise --global-batch so that more GPUs can share a step",
        )
    return NoPlanError(
        f"no number of {gpu.id} trains {name} for ${budget_usd or 0:,.0f}: the cheapest costs ${value:,.0f} on {gpus} GPUs",
        hint=f"allow `--budget {value * 1.05:.3g}`, fewer --tokens, or another --gpu or --precision",
    )
