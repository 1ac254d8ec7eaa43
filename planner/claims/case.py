"""One piece of evidence about a claim: a value with its range and source, or what was looked at in vain."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from planner.errors import Message
from planner.lazy import dataclass

BASES = ("arithmetic", "format", "planner", "datasheet", "published", "kernels", "trained", "measured")
"""What a value rests on: sums that can be done by hand; the number formats; the planner with its range; a vendor's
peak; published runs; published kernel times; training by `mpplan numerics`; a measurement record of this machine."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One value that agrees with a claim or does not; without a value, what was looked at."""

    what: str
    """Names of the field alone (GPU, model, precisions), the same in every language."""
    basis: str
    """One of `BASES`."""
    source: str
    """Where it can be looked up or run again."""
    low: float | None = None
    mid: float | None = None
    """None: nothing was found; `looked` says what was looked at."""
    high: float | None = None
    count: int = 1
    """Published pairs, shapes or runs behind it."""
    claimed: tuple[float | None, float | None] | None = None
    """Bounds of this case, where the claim says several things; None: those of the claim."""
    unit: str | None = None
    """One of `claim.UNITS`; None: that of the claim."""
    stands_in: bool = False
    """Whether it is of something smaller than the claim is about: it can contradict, but not settle it."""
    own: bool = False
    """Whether it is made of the claim's own figures: they can contradict each other, but a claim is no evidence for
    itself."""
    beside: bool = False
    """Whether it only stands beside the verdict: a figure that helps to read it."""
    looked: Message | None = None
    """What was looked at and why it does not decide, where there is no value."""

    @classmethod
    def of(cls, values: Sequence[float], *, what: str, basis: str, source: str, **more: object) -> Case:
        """The median of several values, with the smallest and the largest as range."""
        return cls(
            what=what, basis=basis, source=source, low=min(values), mid=statistics.median(values), high=max(values),
            count=len(values), **more,  # type: ignore[arg-type]  # the fields above by name
        )  # fmt: skip

    @classmethod
    def exactly(cls, value: float, *, what: str, basis: str, source: str, **more: object) -> Case:
        """A value without a range."""
        return cls.of([value], what=what, basis=basis, source=source, **more)


def looked_at(what: str, *, basis: str, source: str, why: Message) -> Case:
    """A part of a claim that was looked at without finding a value: it stays open."""
    return Case(what=what, basis=basis, source=source, looked=why)


def left_out(what: str, *, basis: str, source: str, why: Message) -> Case:
    """A case that has no value, and why; it leaves nothing of the claim open."""
    return Case(what=what, basis=basis, source=source, looked=why, beside=True)
