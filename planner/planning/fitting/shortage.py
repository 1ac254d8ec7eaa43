"""What is short where no number of GPUs meets the targets, by how much, and what would be enough."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from planner.errors import Message, NoPlanError
from planner.parallelism.layout import Layouts
from planner.parallelism.search import FixedLayout, of_samples
from planner.performance.evaluation import Score
from planner.performance.memory import usable_bytes
from planner.planning.case import Case
from planner.planning.choice import best_on
from planner.planning.targets import ROOM_RATIO, Targets, at_confidence
from planner.rates.terms import Draws
from planner.units import DAY_S, GIB

Bools = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.float64]

Best = tuple[float, Layouts] | None
"""A figure and the layout it belongs to, as columns of length 1."""

MORE_MEMORY = Message.of("hint.more_memory")
"""The last resort where nothing fits."""


@dataclass(slots=True, kw_only=True)
class Nearest:
    """What came closest to the targets, for the message when nothing meets them."""

    evaluated: int = 0
    smallest_bytes: float = math.inf
    fastest: Best = None
    """Seconds of the fastest that fits."""
    cheapest: Best = None
    """USD of the cheapest that fits, among those in time."""

    def look(self, case: Case, layouts: Layouts, scores: Score, deadline_s: float | None) -> None:
        """Take some layouts into account."""
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


def nothing(case: Case, fixed: FixedLayout, near: Nearest, draws: Draws, targets: Targets) -> NoPlanError:
    """Why no number of GPUs meets the targets: memory, time or money, with what would be enough."""
    if near.fastest is None:
        return _too_big(case, fixed, near, targets)
    fastest = _planned(case, fixed, near.fastest[1])
    fastest_s = at_confidence(case.evaluate(fastest, draws).wall_s, targets.confidence_ratio)
    late = targets.deadline_s is not None and fastest_s > targets.deadline_s
    if late or targets.budget_usd is None or near.cheapest is None:
        return _too_slow(case, fastest, fastest_s, targets)
    return _too_dear(case, _planned(case, fixed, near.cheapest[1]), draws, targets)


def _planned(case: Case, fixed: FixedLayout, at: Layouts) -> Layouts:
    """What would be planned on as many GPUs as a layout has, which need not be that layout."""
    return best_on(case, fixed, int(at.gpus[0])).winner


def _too_slow(case: Case, at: Layouts, fastest_s: float, targets: Targets) -> NoPlanError:
    return NoPlanError(
        Message.of(
            "error.too_slow",
            gpu=case.cluster.gpu.id,
            precision=case.policy.precision,
            deadline_days=(targets.deadline_s or 0.0) / DAY_S,
            confidence=targets.confidence_ratio,
            fastest_days=fastest_s / DAY_S,
            gpus=int(at.gpus[0]),
        ),
        hint=Message.of(
            "hint.later_deadline_or_gpus" if _at_most_allowed(case, at, targets) else "hint.later_deadline_or_batch",
            deadline_days=fastest_s * ROOM_RATIO / DAY_S,
        ),
    )


def _at_most_allowed(case: Case, at: Layouts, targets: Targets) -> bool:
    """Whether the number of GPUs allowed ends the search, and not what shares a step: the next steps lie beyond it."""
    return int(at.gpus[0]) * NEXT_COUNT_RATIO + case.cluster.gpus_per_node > targets.most_gpus


NEXT_COUNT_RATIO = 1.25
"""The next number of GPUs with an even split is seldom farther."""


def _too_dear(case: Case, at: Layouts, draws: Draws, targets: Targets) -> NoPlanError:
    least_usd = at_confidence(case.evaluate(at, draws).cost_usd, targets.confidence_ratio)
    in_time = "" if targets.deadline_s is None else Message.of("error.within_days", days=targets.deadline_s / DAY_S)
    return NoPlanError(
        Message.of(
            "error.too_dear",
            gpu=case.cluster.gpu.id,
            precision=case.policy.precision,
            budget_usd=targets.budget_usd or 0.0,
            in_time=in_time,
            confidence=targets.confidence_ratio,
            cheapest_usd=least_usd,
            gpus=int(at.gpus[0]),
        ),
        hint=larger_budget(case, least_usd * ROOM_RATIO),
    )


def _too_big(case: Case, fixed: FixedLayout, near: Nearest, targets: Targets) -> NoPlanError:
    gpu, node = case.cluster.gpu, case.cluster.gpus_per_node
    if targets.most_gpus < node:
        why = Message.of("error.less_than_a_node", most=targets.most_gpus, node=node, gpu=gpu.id)
        return NoPlanError(why, hint=Message.of("hint.part_of_a_node", most=targets.most_gpus, node=node))
    if not near.evaluated:
        recipe = case.recipe
        key = of_samples(recipe, "error.no_even_split", "error.no_even_split_images")
        why = Message.of(key, global_batch=recipe.global_batch)
        return NoPlanError(why, hint=Message.of(of_samples(recipe, "hint.more_divisors", "hint.more_divisors_images")))
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


def larger_budget(case: Case, budget_usd: float) -> Message:
    """What would be enough, and what else would cost less."""
    return Message.of(of_samples(case.recipe, "hint.larger_budget", "hint.larger_budget_images"), budget_usd=budget_usd)


def leaner(case: Case, fixed: FixedLayout) -> tuple[Message, ...]:
    """What would need less memory and is not tried yet; a model that sees images has no other layout."""
    if case.recipe.model.has_network:
        return (MORE_MEMORY,) if fixed.micro_batch in (None, 1) else (_set("micro_batch", 1), MORE_MEMORY)
    recipe = case.recipe
    ways = [_set("loss", "fused")] if _has_large_logits(case) else []
    ways += [
        Message.of("hint.without", input=name, value=getattr(fixed, name))
        for name in ("tp", "pp", "zero")
        if getattr(fixed, name) is not None
        and not (recipe.how.fine_tunes and getattr(fixed, name) == 1)  # as its framework has it
    ]
    if fixed.act_ckpt not in (None, "full"):
        ways.append(_set("act_ckpt", "full"))
    if fixed.micro_batch not in (None, 1):
        ways.append(_set("micro_batch", 1))
    if recipe.offload != "optimizer" and not recipe.how.adapts:  # adapters have next to no states
        ways.append(_set("offload", "optimizer"))
    if recipe.optimizer.full_moments and not recipe.how.adapts:
        ways.append(_set("optimizer", "adamw-8bit"))
    return (*ways, MORE_MEMORY)


LARGE_LOGITS = 0.1
"""Share of a GPU's memory from which the logits of one sequence are worth a hint."""


def _has_large_logits(case: Case) -> bool:
    """Whether computing the loss in pieces would save a good part of the memory."""
    recipe = case.recipe
    logits_bytes = recipe.seq_len * recipe.model.vocab * float(np.ravel(case.mid.logit_stored_bytes)[0])
    return not recipe.fused_head and logits_bytes > LARGE_LOGITS * usable_bytes(case.cluster.gpu)


def _set(name: str, value: str | int) -> Message:
    return Message.of("flag.with_value", input=name, value=value)
