"""From cases to a verdict, by one rule for all claims; no verdict is written down anywhere else.

A case agrees where its middle lies within the claim's figures, each widened by the claim's tolerance. All agree: the
claim holds; some: it holds under the conditions of those; none: it does not hold; no case has a value: it cannot be
judged. A claim that something reaches `up to` a figure needs a case that comes near it without going beyond. Cases that
only stand in for what the claim is about can contradict it, but what they alone bear out holds under the condition of
being so small; and where a part of the claim was looked into in vain, the rest holds under the condition of leaving it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from planner.claims.case import BASES, Case
from planner.claims.claim import UNITS, Claim
from planner.errors import Message

VERDICTS = ("holds", "holds_under_conditions", "does_not_hold", "cannot_be_judged")
MOST_NAMED = 4
"""Cases that a sentence names; the others are counted."""
MOST_BRIEF = 2
"""The same of the short sentence of a report."""
_FIRST = ("measured", "published", "kernels", "planner", "datasheet", "trial", "arithmetic", "format")
"""Bases in the order in which their cases are named: what really ran comes first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """A claim with its verdict and everything behind it."""

    claim: Claim
    verdict: str
    """One of `VERDICTS`."""
    decided_by: tuple[str, ...]
    """Bases of the cases that count, one of `case.BASES` each; of those looked at where none counts."""
    words: Message
    """The verdict's reason in a sentence or two."""
    brief: Message
    """The same with fewer cases and without their ranges."""
    evidence: tuple[Case, ...]
    """Cases, those that count first."""
    notes: tuple[Message, ...] = ()
    """What a reader should know beside it: the arithmetic, the limits of what was measured."""


def bounds(claim: Claim, case: Case) -> tuple[float | None, float | None]:
    """Between which figures a case agrees, the tolerance included; None: unbounded."""
    low, high = (claim.low, claim.high) if case.claimed is None else case.claimed
    if case.claimed is None:
        low = None if claim.reading == "up_to" else low
        high = None if claim.reading == "at_least" else high
    slack = claim.tolerance_ratio
    return (None if low is None else low - abs(low) * slack), (None if high is None else high + abs(high) * slack)


def agrees(claim: Claim, case: Case) -> bool:
    """Whether the middle of a case lies within the claim's figures."""
    assert case.mid is not None
    low, high = bounds(claim, case)
    return (low is None or case.mid >= low) and (high is None or case.mid <= high)


def judge(claim: Claim, cases: Sequence[Case], notes: Sequence[Message] = ()) -> Judged:
    """The verdict on a claim.

    Args:
        claim: what is said.
        cases: the evidence; those without a value were looked at in vain.
        notes: what is said beside the verdict.
    """
    counted = [case for case in cases if case.mid is not None and not case.beside]
    counted.sort(key=lambda case: _FIRST.index(case.basis))
    inside = [case for case in counted if agrees(claim, case)]
    outside = [case for case in counted if not agrees(claim, case)]
    deciding = counted or list(cases)
    rest = [case for case in cases if case not in counted]
    sides = _Sides(inside=inside, outside=outside, rest=rest)
    verdict, words = _verdict(claim, sides, partial(_named, claim, most=MOST_NAMED, ranges=True))
    _, brief = _verdict(claim, sides, partial(_named, claim, most=MOST_BRIEF, ranges=False))
    return Judged(
        claim=claim, verdict=verdict, words=words, brief=brief, evidence=(*inside, *outside, *rest), notes=tuple(notes),
        decided_by=tuple(basis for basis in BASES if any(case.basis == basis for case in deciding)),
    )  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class _Sides:
    """Cases by what they say."""

    inside: Sequence[Case]
    outside: Sequence[Case]
    rest: Sequence[Case]
    """Those that do not count."""


def _verdict(claim: Claim, sides: _Sides, named: Callable[[Sequence[Case]], Message]) -> tuple[str, Message]:
    inside, outside, rest = sides.inside, sides.outside, sides.rest
    if not inside and not outside:
        why = tuple(case.looked for case in rest if case.looked is not None)
        beside = [case for case in rest if case.mid is not None]
        if not why and beside:
            return "cannot_be_judged", Message.of("claim.only_beside", cases=named(beside))
        return "cannot_be_judged", Message.of("claim.cannot_be_judged", why=why)
    counted = [*inside, *outside]
    span = _span(claim, counted)
    if not inside:
        return "does_not_hold", Message.of("claim.does_not_hold", cases=named(outside), **span)
    if claim.reading == "up_to" and not _reached(claim, inside):
        if not outside:
            return "does_not_hold", Message.of("claim.not_reached", **span)
        values = {"inside": named(inside), "outside": named(outside)}
        return "does_not_hold", Message.of("claim.beyond", **values)
    if outside:
        values = {"inside": named(inside), "outside": named(outside)}
        return "holds_under_conditions", Message.of("claim.holds_under_conditions", **values)
    if all(case.stands_in for case in inside):
        return "holds_under_conditions", Message.of("claim.stands_in", cases=named(inside))
    open_parts = tuple(case.looked for case in rest if case.looked is not None)
    if open_parts:
        return "holds_under_conditions", Message.of("claim.holds_in_part", cases=named(inside), why=open_parts)
    return "holds", Message.of("claim.holds", cases=named(inside), **span)


def _reached(claim: Claim, inside: Sequence[Case]) -> bool:
    assert claim.high is not None
    return max(case.mid or 0.0 for case in inside) >= claim.high * (1.0 - claim.tolerance_ratio)


_PLACES = {"fraction_saved": 2, "fraction_added": 2, "memory_share": 2, "recovered": 3, "points": 4, "share_lost": 4}
"""Decimal places of shares, as their messages show them: what rounds to nothing has no sign."""


def quantity(value: float, unit: str) -> Message:
    """A value in its unit."""
    places = _PLACES.get(unit)
    shown = float(f"{value:.6g}") if places is None else round(value, places) + 0.0
    return Message.of(UNITS[unit], value=shown)


def _span(claim: Claim, cases: Sequence[Case]) -> dict[str, Message]:
    """The smallest and the largest of cases in the unit of the claim."""
    values = [case.mid for case in cases if case.mid is not None and case.unit in (None, claim.unit)]
    values = values or [case.mid for case in cases if case.mid is not None]
    return {"low": quantity(min(values), claim.unit), "high": quantity(max(values), claim.unit)}


def _named(claim: Claim, cases: Sequence[Case], *, most: int, ranges: bool) -> Message:
    """The first cases by name with their values, and how many more there are."""
    first = tuple(_worded(claim, case, ranges) for case in cases[:most])
    more = len(cases) - most
    return Message.of("claim.cases_more", cases=first, n=more) if more > 0 else Message.of("claim.cases", cases=first)


def _worded(claim: Claim, case: Case, ranges: bool) -> Message:
    """A case with its value, and with the range where it has one that can be seen."""
    assert case.low is not None
    assert case.mid is not None
    assert case.high is not None
    unit = case.unit or claim.unit
    low, mid, high = (quantity(value, unit) for value in (case.low, case.mid, case.high))
    if not ranges or case.high - case.low <= 0.02 * abs(case.mid):
        return Message.of("claim.case", what=case.what, value=mid)
    return Message.of("claim.case_range", what=case.what, value=mid, low=low, high=high)
