"""What a decider gives: the cases of a claim and what is said beside them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from planner.claims.case import Case
from planner.claims.evidence.known import Known
from planner.errors import Message
from planner.lazy import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """The evidence about one claim, before the rule turns it into a verdict."""

    cases: Sequence[Case]
    notes: Sequence[Message] = ()


Decider = Callable[[Known], Decision]
"""Gathers the evidence about one claim."""


def saved(ratio: float) -> float:
    """The share of time that a speed-up saves."""
    return 1.0 - 1.0 / ratio


def unsaved(ratio: float) -> float:
    """The share of memory that is saved where `ratio` of it is left."""
    return 1.0 - ratio


def times(ratio: float) -> float:
    """A speed-up as it is."""
    return ratio


WIDE, HALF = ("fp32", "tf32"), ("fp16", "bf16")
"""Precisions that mixed precision replaces, and those that it brings."""
