"""What needs less memory than a plan that does not fit: ways that a refusal offers."""

from __future__ import annotations

import numpy as np

from planner.errors import Message, UsageError
from planner.lazy import dataclass
from planner.parallelism.search import FixedLayout, enumerate_layouts
from planner.performance.memory import usable_bytes
from planner.planning.case import Case
from planner.planning.fitting.ways import Way, leaner
from planner.planning.risk import MOST_HOST_BYTES, WORTH_TRYING, risk_of
from planner.units import GIB

MORE_MEMORY = Message.of("hint.more_memory")
"""The last resort where nothing fits."""
LOWER = 0.99
"""Share of the memory of what does not fit that a way must stay below to lower it."""


def helpful(case: Case, fixed: FixedLayout, gpus: int | tuple[int, int]) -> tuple[Message, ...]:
    """Ways after which it fits, the leanest first; where none is enough alone, the fewest of them that are together.

    One that risks more than the question allows says so; one that risks more than is worth a try is left out.

    Args:
        case: what does not fit.
        fixed: what the user fixed of the layout.
        gpus: a number of GPUs, or the least and the most.
    """
    leanest = _leanest(case, fixed, gpus)
    lower: list[tuple[_Need, Way]] = []
    others: list[Way] = []  # what lowers nothing alone may do so once something else does not fill the memory
    for way in leaner(case, fixed):
        need = _leanest(*way.taken(case, fixed), gpus)
        if need is not None and (leanest is None or need.bytes < LOWER * leanest.bytes):
            lower.append((need, way))
        elif need is not None:
            others.append(way)
    lower.sort(key=lambda each: each[0].bytes)
    enough = tuple(_told(case, way.flag, need) for need, way in lower if need.is_worth_trying(case))
    return (*(enough or _together(case, fixed, gpus, [*(way for _, way in lower), *others])), MORE_MEMORY)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Need:
    """What the leanest layout needs at mid, of a GPU and of each host, and its risk of running out of memory."""

    bytes: float
    host_bytes: float
    risk: float

    def is_worth_trying(self, case: Case) -> bool:
        """Whether the risk is allowed, or small enough to be named, and a host may have so much memory."""
        return self.risk <= max(case.memory_risk, WORTH_TRYING) and self.host_bytes <= MOST_HOST_BYTES


def _told(case: Case, way: Message, need: _Need) -> Message:
    """A way, with what else it needs and risks."""
    needs = told_needs(case, need.host_bytes, need.risk)
    return Message.of("hint.option", option=way, needs=needs) if needs else way


def told_needs(case: Case, host_bytes: float, risk: float) -> tuple[Message, ...]:
    """The memory of each host that a way takes, if any, and its risk where that is above the allowed."""
    on_host = (Message.of("hint.on_host", host_gib=host_bytes / GIB),) if host_bytes else ()
    return on_host if risk <= case.memory_risk else (*on_host, Message.of("hint.running_out", risk=risk))


def with_risk(case: Case, option: Message, risk: float | None) -> Message:
    """One of several options, with its risk of running out of memory where that is above the allowed.

    Args:
        case: the question on one kind of GPU.
        option: what to do.
        risk: of what would be planned then; None where that is safe.
    """
    needs = () if risk is None else told_needs(case, 0.0, risk)
    return Message.of("hint.option", option=option, needs=needs) if needs else option


def with_ways(hint: Message, ways: tuple[Message, ...]) -> Message:
    """A hint with other ways in the place of its own; the ways alone where it names none."""
    values = dict(hint.values)
    return (
        Message.of(hint.key, **(values | {"ways": ways}))
        if "ways" in values
        else Message.of("hint.try_ways", ways=ways)
    )


def _together(case: Case, fixed: FixedLayout, gpus: int | tuple[int, int], ways: list[Way]) -> tuple[Message, ...]:
    """Some ways that fit together, as one, without those that can be left out; none where all are not enough."""
    need = _needed_with(case, fixed, gpus, ways)
    if need is None:
        return ()
    for way in reversed(ways):
        others = [other for other in ways if other is not way]
        enough = _needed_with(case, fixed, gpus, others)
        if enough is not None:
            ways, need = others, enough
    return (_told(case, Message.of("hint.together", ways=tuple(way.flag for way in ways)), need),)


def _needed_with(case: Case, fixed: FixedLayout, gpus: int | tuple[int, int], ways: list[Way]) -> _Need | None:
    """What the leanest layout needs once some ways are taken; None where that is not worth a try."""
    for way in ways:
        case, fixed = way.taken(case, fixed)
    need = _leanest(case, fixed, gpus)
    return need if need is not None and need.is_worth_trying(case) else None


def _leanest(case: Case, fixed: FixedLayout, gpus: int | tuple[int, int]) -> _Need | None:
    """What the leanest layout needs; None where there is no layout."""
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
    at = layouts.only(leanest)
    return _Need(
        bytes=float(needed_bytes[leanest]), host_bytes=case.host_bytes(at), risk=risk_of(case, at) if fits else 1.0
    )
