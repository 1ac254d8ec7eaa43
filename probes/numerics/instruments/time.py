"""The time of an instrument, and the storing of each result that it has finished."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from planner.lazy import dataclass

Plain = dict[str, Any]
"""A document that JSON can hold."""

Keep = Callable[[str, Callable[[], Plain]], Plain]
"""`(key, compute)`: return the result stored under the key, or compute it and store it at once."""


class OutOfTimeError(Exception):
    """The time of an instrument is up; its finished results are stored."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeBudget:
    """The time that work may take, as its end on the monotonic clock."""

    end_s: float
    """Moment of `time.monotonic` at which it is over."""

    @property
    def left_s(self) -> float:
        """Seconds left; negative once the time is over."""
        return self.end_s - time.monotonic()

    def portion(self, share: float) -> TimeBudget:
        """Return the budget of this share of the time left, from now."""
        return TimeBudget(end_s=time.monotonic() + share * max(self.left_s, 0.0))

    def require(self, expected_s: float = 0.0) -> None:
        """Continue only if enough time is left.

        Raises:
            OutOfTimeError: less than the expected time is left.
        """
        if self.left_s < expected_s:
            raise OutOfTimeError


def count_of(count: int, what: str) -> str:
    """Return a count with its noun: `1 seed`, `3 seeds`."""
    return f"{count} {what}" if count == 1 else f"{count} {what}s"


def missing(lacking: int, whole: int, what: str) -> str:
    """Name what there was no time for, so that it cannot be read as what was done: `2 of 3 seeds missing`."""
    return f"{lacking} of {whole} {what} missing"
