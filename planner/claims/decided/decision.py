"""The result of a decider: the cases of a claim and the notes on them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from planner.claims.case import Case
from planner.claims.evidence.known import Known
from planner.errors import Message
from planner.lazy import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """The evidence on one claim, before the rule turns it into a verdict."""

    cases: Sequence[Case]
    notes: Sequence[Message] = ()


Decider = Callable[[Known], Decision]
"""Gathers the evidence on one claim."""


def saved(ratio: float) -> float:
    """Return the share of time that a speed-up saves."""
    return 1.0 - 1.0 / ratio


def unsaved(ratio: float) -> float:
    """Return the share of memory that is saved where the share `ratio` remains."""
    return 1.0 - ratio


def times(ratio: float) -> float:
    """Return a speed-up unchanged."""
    return ratio


WIDE, HALF = ("fp32", "tf32"), ("fp16", "bf16")
"""Precisions that mixed precision replaces, and precisions that it introduces."""
