"""What needs less memory than a plan that does not fit: ways that a refusal offers."""

from __future__ import annotations

import numpy as np

from planner.errors import Message, UsageError
from planner.parallelism.search import FixedLayout, enumerate_layouts
from planner.performance.memory import usable_bytes
from planner.planning.case import Case
from planner.planning.fitting.ways import Way, leaner
from planner.planning.risk import MOST_RISK, risk_of

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
    lower: list[tuple[float, bool, Way]] = []
    for way in leaner(case, fixed):
        found = _leanest(*way.taken(case, fixed), gpus)
        if found is not None and (needed is None or found[0] < LOWER * needed[0]):
            lower.append((*found, way))
    lower.sort(key=lambda each: each[0])
    enough = tuple(way.flag for _, alone, way in lower if alone)
    return (*(enough or _together(case, fixed, gpus, [way for _, _, way in lower])), MORE_MEMORY)


def with_ways(hint: Message, ways: tuple[Message, ...]) -> Message:
    """A hint with other ways in the place of its own, if it names any."""
    values = dict(hint.values)
    return Message.of(hint.key, **(values | {"ways": ways})) if "ways" in values else hint


def _together(case: Case, fixed: FixedLayout, gpus: int | tuple[int, int], ways: list[Way]) -> tuple[Message, ...]:
    """Some ways that fit together, as one, without those that can be left out; none where all are not enough."""
    if not _fit(case, fixed, gpus, ways):
        return ()
    for way in reversed(ways):
        others = [other for other in ways if other is not way]
        ways = others if _fit(case, fixed, gpus, others) else ways
    return (Message.of("hint.together", ways=tuple(way.flag for way in ways)),)


def _fit(case: Case, fixed: FixedLayout, gpus: int | tuple[int, int], ways: list[Way]) -> bool:
    """Whether a layout is more likely to fit than not once some ways are taken."""
    for way in ways:
        case, fixed = way.taken(case, fixed)
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
    return float(needed_bytes[leanest]), bool(fits and risk_of(case, layouts.only(leanest)) <= MOST_RISK)
