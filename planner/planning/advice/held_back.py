"""Warn of a lower precision that is slower than a higher one, since memory leaves it only a slower layout."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from planner.errors import Message
from planner.planning.advice.settings import differences
from planner.planning.case import Case
from planner.planning.choice import Choice
from planner.planning.ranges import Ranged
from planner.planning.risk import risk_of
from planner.planning.targets import SOONER_RATIO, digits_apart


def held_back(asked: Case, cases: Sequence[Case], planned: Sequence[Ranged]) -> Iterator[Message]:
    """Yield warnings that a precision with faster arithmetic is slower for want of memory.

    One of the two precisions must be the requested one; if their arithmetic is equally fast, only the requested one is
    said to be held back. A warning is given where the layout of the higher precision would make the lower one clearly
    faster than its own layout does, but at a risk above the limit, or above the risk of its own layout where that is
    not safe.

    Args:
        asked: the requested precision on one kind of GPU.
        cases: all precisions on that GPU, each with the batch of the requested one.
        planned: their plans on the same GPUs.
    """
    pairs = list(zip(cases, planned, strict=True))
    for lower, slow in pairs:
        for higher, quick in pairs:
            if asked.policy.id in (lower.policy.id, higher.policy.id) and _should_be_faster(lower, higher, asked):
                yield from _message_of_pair(lower, slow, higher, quick)


def _message_of_pair(lower: Case, slow: Ranged, higher: Case, quick: Ranged) -> Iterator[Message]:
    """Yield the warning about one pair, if memory rather than arithmetic makes the lower precision slower."""
    if slow.choice is None or quick.choice is None:
        return
    own, bolder = slow.choice.winner, quick.choice.winner
    slow_s = _seconds(slow.choice)
    if _seconds(quick.choice) > SOONER_RATIO * slow_s:
        return
    bold_s = float(np.ravel(lower.evaluate(bolder).wall_s)[0])
    risk = risk_of(lower, bolder)
    least = lower.memory_risk if slow.choice.safe else risk_of(lower, own)
    if bold_s > SOONER_RATIO * slow_s or risk <= least:
        return
    new, old = differences(bolder.at(0), own.at(0))
    yield Message.of(
        "warning.held_back", gpu=lower.cluster.gpu.id, precision=lower.policy.precision,
        other=higher.policy.precision, new=new, old=old, risk=risk,
        allowed=lower.memory_risk, digits=digits_apart(risk, lower.memory_risk),
    )  # fmt: skip


def _should_be_faster(lower: Case, higher: Case, asked: Case) -> bool:
    """Return whether the first has the faster arithmetic; of two equally fast ones, only the requested one counts."""
    return _peak(lower) > _peak(higher) or (lower is asked and lower is not higher and _peak(lower) == _peak(higher))


def _peak(case: Case) -> float:
    """Return the dense peak of a precision's arithmetic."""
    return float(case.cluster.gpu.peak_flop_per_s[case.policy.linear_compute])


def _seconds(choice: Choice) -> float:
    """Return the wall-clock time of a run at mid."""
    assert choice.best is not None  # the choice of a plan has a winner
    return float(choice.scores.wall_s[choice.best])
