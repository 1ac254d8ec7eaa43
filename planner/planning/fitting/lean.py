"""What needs less memory than a plan that does not fit: ways that a refusal offers."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from planner.errors import Message, UsageError
from planner.parallelism.search import FixedLayout, enumerate_layouts
from planner.performance.memory import usable_bytes
from planner.planning.case import Case
from planner.planning.choice import MOST_RISK, risk_of
from planner.rates.ladder import resolve_rates
from planner.training.optimizers import find_optimizer
from planner.training.recipe import Recipe

MORE_MEMORY = Message.of("hint.more_memory")
"""The last resort where nothing fits."""
LOWER = 0.99
"""Share of the memory of what does not fit that a way must stay below to lower it."""


def helpful(case: Case, fixed: FixedLayout, gpus: int | tuple[int, int]) -> tuple[Message, ...]:
    """Ways after which it fits, the leanest first; where none is enough alone, the fewest of them that are together.

    Args:
        case: what does not fit.
        fixed: what the user fixed of the layout.
        gpus: a number of GPUs, or the least and the most.
    """
    needed = _leanest(case, fixed, gpus)
    lower: list[tuple[float, bool, Message]] = []
    for way in leaner(case, fixed):
        other = _taken(case, fixed, way)
        found = None if other is None else _leanest(*other, gpus)
        if found is not None and (needed is None or found[0] < LOWER * needed[0]):
            lower.append((*found, way))
    lower.sort(key=lambda each: each[0])
    enough = tuple(way for _, alone, way in lower if alone)
    return (*(enough or _together(case, fixed, gpus, [way for _, _, way in lower])), MORE_MEMORY)


def with_ways(hint: Message, ways: tuple[Message, ...]) -> Message:
    """A hint with other ways in the place of its own, if it names any."""
    values = dict(hint.values)
    return Message.of(hint.key, **(values | {"ways": ways})) if "ways" in values else hint


def _together(case: Case, fixed: FixedLayout, gpus: int | tuple[int, int], ways: list[Message]) -> tuple[Message, ...]:
    """Some ways that fit together, as one, without those that can be left out; none where all are not enough."""
    if not _fit(case, fixed, gpus, ways):
        return ()
    for way in reversed(ways):
        others = [other for other in ways if other is not way]
        ways = others if _fit(case, fixed, gpus, others) else ways
    return (Message.of("hint.together", ways=tuple(ways)),)


def _fit(case: Case, fixed: FixedLayout, gpus: int | tuple[int, int], ways: list[Message]) -> bool:
    """Whether a layout is more likely to fit than not once some ways are taken."""
    for way in ways:
        case, fixed = _taken(case, fixed, way) or (case, fixed)
    found = _leanest(case, fixed, gpus)
    return found is not None and found[1]


def _leanest(case: Case, fixed: FixedLayout, gpus: int | tuple[int, int]) -> tuple[float, bool] | None:
    """What the leanest layout needs, and whether it is more likely to fit than not; None where there is no layout."""
    try:
        if isinstance(gpus, int):
            layouts = enumerate_layouts(case.recipe, case.cluster, fixed, gpus=gpus)
        else:
            layouts = enumerate_layouts(case.recipe, case.cluster, fixed, gpus_between=gpus)
    except UsageError:  # what else is fixed does not go with it
        return None
    if not len(layouts):
        return None
    needed_bytes = case.score(layouts).memory_bytes
    leanest = int(np.argmin(needed_bytes))
    fits = needed_bytes[leanest] <= usable_bytes(case.cluster.gpu)
    return float(needed_bytes[leanest]), bool(
        fits and risk_of(case, layouts.take(slice(leanest, leanest + 1))) <= MOST_RISK
    )


def _taken(case: Case, fixed: FixedLayout, way: Message) -> tuple[Case, FixedLayout] | None:
    """A question with a way of `leaner` taken; None for what is no flag."""
    values = dict(way.values)
    name, value = str(values.get("input")), values.get("value")
    part: dict[str, Any] = {name: None if way.key == "hint.without" else value}
    if way.key == "hint.without":
        return case, replace(fixed, **part)
    if way.key != "flag.with_value":
        return None
    if name == "loss":
        return _of(case, replace(case.recipe, chunked_loss=True, fused_head=True)), fixed
    if name == "optimizer":
        return _of(case, replace(case.recipe, optimizer=find_optimizer(str(value)))), fixed
    if name == "offload":
        return _of(case, replace(case.recipe, offload=str(value))), fixed
    return case, replace(fixed, **part)


def _of(case: Case, recipe: Recipe) -> Case:
    """The case of another recipe."""
    rates = resolve_rates(case.cluster, recipe, None, case.rates.parameters)
    return replace(case, recipe=recipe, rates=rates, mid=rates.sample())


def leaner(case: Case, fixed: FixedLayout) -> tuple[Message, ...]:
    """What would need less memory and is not tried yet; a model that sees images has no other layout."""
    if case.recipe.model.has_network:
        return (MORE_MEMORY,) if fixed.micro_batch in (None, 1) else (_set("micro_batch", 1), MORE_MEMORY)
    recipe = case.recipe
    ways = [_set("loss", "fused")] if _has_large_logits(case) else []
    ways += [
        Message.of("hint.without", input=name, value=getattr(fixed, name))
        for name in given(case, fixed, "tp", "pp", "zero")
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


def given(case: Case, fixed: FixedLayout, *names: str) -> tuple[str, ...]:
    """Which of some parts of a layout a user fixed: not those that a framework, or a model of images, has one of."""
    recipe = case.recipe
    as_usual = (None, 1) if recipe.how.fine_tunes or recipe.model.has_network else (None,)
    return tuple(name for name in names if getattr(fixed, name) not in (as_usual if name != "micro_batch" else (None,)))
