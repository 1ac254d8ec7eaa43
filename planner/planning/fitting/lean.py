"""Ways to train with less memory than a plan that does not fit, as a refusal offers them."""

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
"""The last suggestion where nothing fits."""
LOWER = 0.99
"""A way must need less than this share of the original memory to count as lowering it."""


def helpful(case: Case, fixed: FixedLayout, gpus: int | tuple[int, int]) -> tuple[Message, ...]:
    """Return the ways after which the case fits, the leanest first; if none is enough alone, the fewest together.

    A way that risks more than the question allows says so; one that risks more than is worth a try is left out. The
    advice to use GPUs with more memory comes last.

    Args:
        case: the case that does not fit.
        fixed: the parts of the layout that the user fixed.
        gpus: a number of GPUs, or the least and the most.
    """
    leanest = _leanest(case, fixed, gpus)
    lower: list[tuple[_Need, Way]] = []
    others: list[Way] = []  # a way that lowers nothing alone may do so once another item no longer fills the memory
    for way in leaner(case, fixed):
        need = _leanest(*way.taken(case, fixed), gpus)
        if need is not None and (leanest is None or need.bytes < LOWER * leanest.bytes):
            lower.append((need, way))
        elif need is not None:
            others.append(way)
    lower.sort(key=lambda entry: entry[0].bytes)
    enough = tuple(_way_with_needs(case, way.flag, need) for need, way in lower if need.is_worth_trying(case))
    return (*(enough or _together(case, fixed, gpus, [*(way for _, way in lower), *others])), MORE_MEMORY)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Need:
    """Memory that the leanest layout needs at mid, of a GPU and of each host, and its risk of running out of memory."""

    bytes: float
    host_bytes: float
    risk: float

    def is_worth_trying(self, case: Case) -> bool:
        """Return whether the risk is allowed, or small enough to be named, and a host may have that much memory."""
        return self.risk <= max(case.memory_risk, WORTH_TRYING) and self.host_bytes <= MOST_HOST_BYTES


def _way_with_needs(case: Case, way: Message, need: _Need) -> Message:
    """Return a way, with the host memory that it needs and its risk."""
    needs = needs_messages(case, need.host_bytes, need.risk)
    return Message.of("hint.option", option=way, needs=needs) if needs else way


def needs_messages(case: Case, host_bytes: float, risk: float) -> tuple[Message, ...]:
    """Return the host memory that a way takes, if any, and its risk where that is above the limit."""
    on_host: tuple[Message, ...] = ()
    if host_bytes:
        little = host_bytes < GIB
        on_host = (
            Message.of("hint.on_host_little") if little else Message.of("hint.on_host", host_gib=host_bytes / GIB),
        )
    return on_host if risk <= case.memory_risk else (*on_host, Message.of("hint.running_out", risk=risk))


def with_risk(case: Case, option: Message, risk: float | None) -> Message:
    """Return one of several options, with its risk of running out of memory where that is above the limit.

    Args:
        case: the question on one kind of GPU.
        option: what to do.
        risk: memory risk of the plan under that option; None where it is safe.
    """
    needs = () if risk is None else needs_messages(case, 0.0, risk)
    return Message.of("hint.option", option=option, needs=needs) if needs else option


def with_ways(hint: Message, ways: tuple[Message, ...]) -> Message:
    """Return a hint with other ways in place of its own; the ways alone where it names none."""
    values = dict(hint.values)
    return (
        Message.of(hint.key, **(values | {"ways": ways}))
        if "ways" in values
        else Message.of("hint.try_ways", ways=ways)
    )


def _together(case: Case, fixed: FixedLayout, gpus: int | tuple[int, int], ways: list[Way]) -> tuple[Message, ...]:
    """Combine ways that fit together into one, without those that can be left out; empty if all are not enough."""
    need = _needed_with(case, fixed, gpus, ways)
    if need is None:
        return ()
    for way in reversed(ways):
        others = [other for other in ways if other is not way]
        enough = _needed_with(case, fixed, gpus, others)
        if enough is not None:
            ways, need = others, enough
    return (_way_with_needs(case, Message.of("hint.together", ways=tuple(way.flag for way in ways)), need),)


def _needed_with(case: Case, fixed: FixedLayout, gpus: int | tuple[int, int], ways: list[Way]) -> _Need | None:
    """Return the memory needs of the leanest layout once some ways are taken; None where that is not worth a try."""
    for way in ways:
        case, fixed = way.taken(case, fixed)
    need = _leanest(case, fixed, gpus)
    return need if need is not None and need.is_worth_trying(case) else None


def _leanest(case: Case, fixed: FixedLayout, gpus: int | tuple[int, int]) -> _Need | None:
    """Return the memory needs of the leanest layout; None where there is no layout."""
    try:
        if isinstance(gpus, int):
            layouts = enumerate_layouts(case.recipe, case.cluster, fixed, gpus=gpus)
        else:
            layouts = enumerate_layouts(case.recipe, case.cluster, fixed, gpus_between=gpus)
    except UsageError:  # the other fixed values exclude it
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
