"""One piece of evidence on a claim: a value with its range and source, or an account of a fruitless search."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from planner.errors import Message
from planner.lazy import dataclass

BASES = ("arithmetic", "format", "planner", "datasheet", "published", "kernels", "trained", "measured")
"""Basis of a value: sums that can be checked by hand; the number formats; the planner with its range; a vendor's peak;
published runs; published kernel times; training by `mpplan numerics`; a measurement record of this machine."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One value that agrees or disagrees with a claim; without a value, an account of where one was sought."""

    what: str
    """Name of the case, made only of technical names (GPU, model, precisions) that are the same in every language."""
    basis: str
    """One of `BASES`."""
    source: str
    """Where the value can be looked up or reproduced."""
    low: float | None = None
    mid: float | None = None
    """None: no value was found; `looked` states where it was sought."""
    high: float | None = None
    count: int = 1
    """Number of published pairs, shapes or runs behind it."""
    claimed: tuple[float | None, float | None] | None = None
    """Bounds of this case, where the claim makes several statements; None: those of the claim."""
    unit: str | None = None
    """One of `claim.UNITS`; None: the unit of the claim."""
    stands_in: bool = False
    """Whether it concerns something smaller than the claim does: it can contradict the claim but not settle it."""
    own: bool = False
    """Whether it follows from the claim's own figures: these can contradict each other, but cannot support the
    claim."""
    beside: bool = False
    """Whether it is only shown beside the verdict, as context, and does not count."""
    looked: Message | None = None
    """Where a value was sought and why that does not decide, for a case without a value."""

    @classmethod
    def of(cls, values: Sequence[float], *, what: str, basis: str, source: str, **more: object) -> Case:
        """Return a case with the median of several values, and the smallest and largest as its range."""
        return cls(
            what=what, basis=basis, source=source, low=min(values), mid=statistics.median(values), high=max(values),
            count=len(values), **more,  # type: ignore[arg-type]  # the fields above by name
        )  # fmt: skip

    @classmethod
    def exactly(cls, value: float, *, what: str, basis: str, source: str, **more: object) -> Case:
        """Return a case with a value without a range."""
        return cls.of([value], what=what, basis=basis, source=source, **more)


def looked_at(what: str, *, basis: str, source: str, why: Message) -> Case:
    """Return a case for a part of a claim for which no value was found: the part stays open."""
    return Case(what=what, basis=basis, source=source, looked=why)


def left_out(what: str, *, basis: str, source: str, why: Message) -> Case:
    """Return a case that has no value, with the reason; it leaves no part of the claim open."""
    return Case(what=what, basis=basis, source=source, looked=why, beside=True)
