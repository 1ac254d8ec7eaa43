"""The time of an instrument, and the keeping of each thing that it has finished."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from planner.lazy import dataclass

Plain = dict[str, Any]
"""What JSON can hold."""

Keep = Callable[[str, Callable[[], Plain]], Plain]
"""`(key, compute)`: what was kept under the key, or what is computed now and kept at once."""


class OutOfTimeError(Exception):
    """The time of an instrument is up; what it has finished is kept."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Slice:
    """Time until a moment of the monotonic clock."""

    ends: float

    @property
    def left_s(self) -> float:
        """Seconds left; below zero where it is over."""
        return self.ends - time.monotonic()

    def first(self, share: float) -> Slice:
        """A slice of this share of what is left."""
        return Slice(ends=time.monotonic() + share * max(self.left_s, 0.0))

    def must_last(self, expected_s: float = 0.0) -> None:
        """Go on only where there is time.

        Raises:
            OutOfTimeError: there is not.
        """
        if self.left_s < expected_s:
            raise OutOfTimeError


def count_of(count: int, what: str) -> str:
    """`1 seed`, `3 seeds`."""
    return f"{count} {what}" if count == 1 else f"{count} {what}s"


def missing(lacking: int, whole: int, what: str) -> str:
    """What there was no time for, so that it cannot be read as what was done: `2 of 3 seeds missing`."""
    return f"{lacking} of {whole} {what} missing"
