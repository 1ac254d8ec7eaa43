"""How many GPUs, and in which layout: the fastest that fits on N GPUs, or the fewest whole nodes that meet a target.

A layout fits where its peak is within what a process gets of the memory at mid, and is *safe* where the risk of running
out, over draws, stays within the question's. Among safe ones the shortest expected step wins; only where no layout is
safe is the one that needs the least memory taken.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from planner.errors import Message, NoPlanError
from planner.parallelism.layout import Layouts
from planner.parallelism.search import FixedLayout, enumerate_layouts
from planner.performance.evaluation import Score, memory_of, step_of
from planner.performance.memory import memory_risk, usable_bytes
from planner.performance.operations import model_flop_per_token
from planner.planning.case import Case
from planner.rates.terms import Draws, Rates, Value
from planner.units import DAY_S, GIB

Bools = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.float64]
Indices = npt.NDArray[np.intp]

Best = tuple[float, Layouts] | None
"""A figure and the layout it belongs to, as columns of length 1."""

MAX_GPUS = 1 << 20
"""No search goes beyond a million GPUs."""

NEAR = 1.10
"""How far above the best at mid a layout's step may be for its draws to be compared."""
MOST_NEAR = 10
CHOICE_DRAWS = Draws(count=201, seed=0)
"""Common draws of that comparison: a question's seed moves its ranges, not its layout."""

SLACK = 1.02
"""How far the mid rates may miss a target before a layout is dropped: the mid of the draws decides afterwards."""

MORE_MEMORY = Message.of("hint.more_memory")
"""The last resort where nothing fits."""

ROUNDING = 1e-9
"""What a figure may lose by a change of units and back."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """The winner of a search among `layouts`, or why there is none."""

    layouts: Layouts
    scores: Score
    best: int | None
    """Index of the winner; None where nothing fits."""
    evaluated: int
    safe: bool = True
    """Whether the winner's risk of running out of memory is within what the question allows."""

    @property
    def winner(self) -> Layouts:
        """The winning layout as columns of length 1."""
        assert self.best is not None
        return self.layouts.take(slice(self.best, self.best + 1))


def best_on(case: Case, fixed: FixedLayout, gpus: int) -> Choice:
    """The layout with the shortest expected step of those that fit on exactly `gpus` GPUs."""
    layouts = enumerate_layouts(case.recipe, case.cluster, fixed, gpus=gpus)
    scores = case.score(layouts)
    return choose(case, layouts, scores, scores.memory_bytes <= usable_bytes(case.cluster.gpu), len(layouts))


def choose(case: Case, layouts: Layouts, scores: Score, allowed: Bools, evaluated: int) -> Choice:
    """The winner of some layouts that fit: the shortest expected step of the safe ones, else the least memory.

    Args:
        case: what is planned.
        layouts: all that were looked at.
        scores: theirs, at mid.
        allowed: which of them may win, `[layout]`.
        evaluated: number of layouts looked at, for the answer.
    """
    among = np.flatnonzero(allowed)
    best = _expected_best(case, layouts, scores, among)
    safe = best is not None
    if best is None and len(among):
        best = int(among[np.argmin(scores.memory_bytes[among])])
    return Choice(layouts=layouts, scores=scores, best=best, evaluated=evaluated, safe=safe)


def _expected_best(case: Case, layouts: Layouts, scores: Score, among: Indices) -> int | None:
    """Of some layouts the safe one whose expected step is the shortest; None where none is safe.

    Compared over draws are those close to the fastest safe one at mid: there an exposed transfer may be just hidden,
    and a layout win that loses under most of what the rates may be. What one layout risks, another that needs more
    memory risks as well: the latter is not drawn.
    """
    near = _near_and_safe(case, layouts, scores, among)
    if len(near) < 2:
        return near[0] if near else None
    return near[int(np.argmin(expected_steps(case, layouts.take(np.array(near)))))]


def _near_and_safe(case: Case, layouts: Layouts, scores: Score, among: Indices) -> list[int]:
    """The fastest safe layouts at mid, the first of them the fastest."""
    rates = case.rates.sample(CHOICE_DRAWS)
    near: list[int] = []
    risky_bytes = math.inf
    for i in (int(i) for i in among[np.argsort(scores.step_s[among], kind="stable")]):
        if len(near) == MOST_NEAR or (near and scores.step_s[i] > NEAR * scores.step_s[near[0]]):
            break
        if scores.memory_bytes[i] >= risky_bytes:
            continue
        memory_bytes = memory_of(case.recipe, layouts.take(slice(i, i + 1)), rates).total
        if memory_risk(memory_bytes, case.cluster.gpu) > case.memory_risk:
            risky_bytes = float(scores.memory_bytes[i])
        else:
            near.append(i)
    return near


def expected_steps(case: Case, layouts: Layouts) -> Floats:
    """Mean step over draws, `[layout]`: every layout under every draw, in one pass.

    Draws that move shapes (the load of routed experts) leave layouts no products in common: those go one by one.
    """
    rates, number = case.rates.sample(CHOICE_DRAWS), len(layouts)
    if case.recipe.model.experts:
        alone = [_step_s(case, layouts.take(slice(i, i + 1)), rates) for i in range(number)]
        return np.array([np.mean(step_s) for step_s in alone])
    every = layouts.take(np.repeat(np.arange(number), CHOICE_DRAWS.count))
    steps_s: Floats = np.asarray(_step_s(case, every, rates.repeated(number))).reshape(number, -1)
    expected: Floats = steps_s.mean(axis=1)
    return expected


def _step_s(case: Case, at: Layouts, rates: Rates) -> Value:
    """Step under draws, a layout for each or one for all, what a nearly full memory costs included."""
    memory_bytes = memory_of(case.recipe, at, rates).total
    return step_of(case.recipe, case.cluster, at, memory_bytes, rates).total


def _windows(case: Case, deadline_s: float | None) -> Iterator[tuple[float, float]]:
    """Ranges of GPU counts to look at, from the fewest that could meet the deadline at peak rate."""
    low = 1
    if deadline_s is not None:
        flop = case.tokens * model_flop_per_token(case.recipe.model, case.recipe.seq_len)
        peak = case.cluster.gpu.peak_flop_per_s[case.policy.linear_compute]
        low = max(1, math.floor(flop / deadline_s / peak / (1.0 if case.recipe.trains_all else 2.0)))
    while low <= MAX_GPUS:
        high = max(low * 3, 8 * case.cluster.gpus_per_node)
        yield low, high
        low = high + 1


def _targets_met(case: Case, scores: Score, deadline_s: float | None, budget_usd: float | None) -> Bools:
    met = scores.memory_bytes <= usable_bytes(case.cluster.gpu)
    if deadline_s is not None:
        met &= scores.wall_s <= deadline_s * SLACK
    if budget_usd is not None:
        met &= scores.cost_usd <= budget_usd * SLACK
    return met


@dataclass(slots=True, kw_only=True)
class _Nearest:
    """What came closest to the targets, for the message when nothing meets them."""

    evaluated: int = 0
    smallest_bytes: float = math.inf
    fastest: Best = None
    """Seconds of the fastest that fits."""
    cheapest: Best = None
    """USD of the cheapest that fits, among those in time."""

    def look(self, case: Case, layouts: Layouts, scores: Score, deadline_s: float | None) -> None:
        """Take a window of layouts into account."""
        fits = scores.memory_bytes <= usable_bytes(case.cluster.gpu)
        in_time = fits if deadline_s is None else fits & (scores.wall_s <= deadline_s)
        self.evaluated += len(layouts)
        self.smallest_bytes = min(self.smallest_bytes, float(scores.memory_bytes.min()))
        self.fastest = _least(self.fastest, scores.wall_s, fits, layouts)
        self.cheapest = _least(self.cheapest, scores.cost_usd, in_time, layouts)


def _least(so_far: Best, values: Floats, among: Bools, layouts: Layouts) -> Best:
    if not among.any():
        return so_far
    at = int(np.argmin(np.where(among, values, np.inf)))
    candidate = (float(values[at]), layouts.take(slice(at, at + 1)))
    return candidate if so_far is None or candidate[0] < so_far[0] else so_far


def fewest(
    case: Case, fixed: FixedLayout, draws: Draws, *, deadline_s: float | None = None, budget_usd: float | None = None
) -> Choice:
    """The shortest expected step on the fewest whole nodes whose mid duration and cost meet the targets, safely.

    Where no number of GPUs has a layout that does so safely, the fewest that do at all.

    Raises:
        NoPlanError: no number of GPUs does; says by how much, and what would fit.
    """
    near = _Nearest()
    risky: Choice | None = None
    for window in _windows(case, deadline_s):
        layouts = enumerate_layouts(case.recipe, case.cluster, fixed, gpus_between=window)
        if not len(layouts):
            if near.evaluated:
                break
            continue
        scores = case.score(layouts)
        near.look(case, layouts, scores, deadline_s)
        met = _targets_met(case, scores, deadline_s, budget_usd)
        gpus = layouts.gpus
        for count in np.unique(gpus[met]):
            choice = choose(case, layouts, scores, met & (gpus == count), near.evaluated)
            if (choice.safe or risky is None) and _mid_meets(case, choice, draws, deadline_s, budget_usd):
                if choice.safe:
                    return choice
                risky = choice
        if near.cheapest is not None and deadline_s is None and window[0] > 4096:
            break  # more GPUs only add cost
    if risky is not None:
        return risky
    if not near.evaluated:
        _look_everywhere(case, fixed, near, deadline_s)
    raise _nothing(case, fixed, near, draws, deadline_s, budget_usd)


def _look_everywhere(case: Case, fixed: FixedLayout, near: _Nearest, deadline_s: float | None) -> None:
    """The batch cannot keep as many GPUs busy as the deadline needs at peak rate: see what fewer can do."""
    for window in _windows(case, None):
        layouts = enumerate_layouts(case.recipe, case.cluster, fixed, gpus_between=window)
        if len(layouts):
            near.look(case, layouts, case.score(layouts), deadline_s)


def _mid_meets(case: Case, choice: Choice, draws: Draws, deadline_s: float | None, budget_usd: float | None) -> bool:
    drawn = case.evaluate(choice.winner, draws)
    # A deadline taken from a plan's own mid went through days and back: the same plan must still meet it.
    in_time = deadline_s is None or float(np.median(drawn.wall_s)) <= deadline_s * (1.0 + ROUNDING)
    in_budget = budget_usd is None or float(np.median(drawn.cost_usd)) <= budget_usd * (1.0 + ROUNDING)
    return in_time and in_budget


def _nothing(
    case: Case,
    fixed: FixedLayout,
    near: _Nearest,
    draws: Draws,
    deadline_s: float | None,
    budget_usd: float | None,
) -> NoPlanError:
    name, gpu = case.policy.precision, case.cluster.gpu
    if near.fastest is None:
        return _too_big(case, fixed, near)
    best = near.cheapest if budget_usd is not None and near.cheapest else near.fastest
    drawn, gpus = case.evaluate(best[1], draws), int(best[1].gpus[0])
    if best is near.fastest:
        value = float(np.median(drawn.wall_s))
        return NoPlanError(
            Message.of(
                "error.too_slow",
                gpu=gpu.id,
                precision=name,
                deadline_days=(deadline_s or 0.0) / DAY_S,
                fastest_days=value / DAY_S,
                gpus=gpus,
            ),
            hint=Message.of("hint.later_deadline_or_batch", deadline_days=value * 1.05 / DAY_S),
        )
    value = float(np.median(drawn.cost_usd))
    in_time = "" if deadline_s is None else Message.of("error.within_days", days=deadline_s / DAY_S)
    return NoPlanError(
        Message.of(
            "error.too_dear",
            gpu=gpu.id,
            precision=name,
            budget_usd=budget_usd or 0.0,
            in_time=in_time,
            cheapest_usd=value,
            gpus=gpus,
        ),
        hint=Message.of("hint.larger_budget", budget_usd=value * 1.05),
    )


def _too_big(case: Case, fixed: FixedLayout, near: _Nearest) -> NoPlanError:
    gpu = case.cluster.gpu
    if not near.evaluated:
        batch = case.recipe.global_batch
        return NoPlanError(Message.of("error.no_even_split", global_batch=batch), hint=Message.of("hint.more_divisors"))
    need, room = near.smallest_bytes / GIB, usable_bytes(gpu) / GIB
    return NoPlanError(
        Message.of(
            "error.fits_nowhere",
            precision=case.policy.precision,
            gpu=gpu.id,
            needed_gib=need,
            short_gib=need - room,
            capacity_gib=room,
        ),
        hint=Message.of("hint.larger_batch", ways=leaner(case, fixed)),
    )


def leaner(case: Case, fixed: FixedLayout) -> tuple[Message, ...]:
    """What would need less memory and is not tried yet."""
    ways = [
        Message.of("hint.without", input=name, value=getattr(fixed, name))
        for name in ("tp", "pp", "zero")
        if getattr(fixed, name)
    ]
    if fixed.act_ckpt not in (None, "full"):
        ways.append(_set("act_ckpt", "full"))
    if fixed.micro_batch not in (None, 1):
        ways.append(_set("micro_batch", 1))
    if case.recipe.offload != "optimizer":
        ways.append(_set("offload", "optimizer"))
    if case.recipe.optimizer.full_moments:
        ways.append(_set("optimizer", "adamw-8bit"))
    return (*ways, MORE_MEMORY)


def _set(name: str, value: str | int) -> Message:
    return Message.of("flag.with_value", input=name, value=value)
