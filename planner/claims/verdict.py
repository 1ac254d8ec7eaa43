"""Derive a verdict from cases, by one rule for all claims; no verdict is written down anywhere else.

Each case is for the claim, against it, or inconclusive (`standing`). With cases only for it, the claim holds. With
both, it holds under the conditions of the cases for it. With cases only against it, it does not hold. With neither, it
cannot be judged. A claim that something reaches `up to` a figure needs a case that comes near the figure without
exceeding it.

Cases about something smaller than the claim can contradict it; if they alone support it, it holds under the condition
of being so small. Where a part of the claim is open, the rest holds under the condition of leaving that part out.
"""

from __future__ import annotations

from collections.abc import Sequence

from planner.claims.case import BASES, Case
from planner.claims.claim import Claim
from planner.claims.named import MOST_BRIEF, MOST_NAMED, Naming, quantity, span
from planner.claims.standing import figures, reaches, standing
from planner.errors import Message
from planner.lazy import dataclass

VERDICTS = ("holds", "holds_under_conditions", "does_not_hold", "cannot_be_judged")
_FIRST = ("measured", "published", "kernels", "planner", "datasheet", "trained", "arithmetic", "format")
"""Order in which the bases of cases are named: real runs come first."""
_COUNTED = ("agrees", "includes", "disagrees")


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """A claim with its verdict and its evidence."""

    claim: Claim
    verdict: str
    """One of `VERDICTS`."""
    decided_by: tuple[str, ...]
    """Bases of the cases that count, each one of `case.BASES`; where none counts, the bases of all cases."""
    words: Message
    """Reason for the verdict in a sentence or two."""
    brief: Message
    """The reason with fewer cases, without their ranges."""
    evidence: tuple[Case, ...]
    """All cases, those that count first."""
    notes: tuple[Message, ...] = ()
    """What a reader should know besides: the arithmetic, the limits of what was measured."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Sides:
    """Cases by their standing."""

    inside: Sequence[Case]
    between: Sequence[Case]
    """Inconclusive cases, whose range is too wide."""
    outside: Sequence[Case]
    uncounted: Sequence[Case]
    """Cases that do not count."""

    @property
    def open_parts(self) -> tuple[Message, ...]:
        """Reasons why parts of the claim are open, each once."""
        whys = [case.looked for case in self.uncounted if case.looked is not None and not case.beside]
        return tuple(why for number, why in enumerate(whys) if why not in whys[:number])


def judge(claim: Claim, cases: Sequence[Case], notes: Sequence[Message] = ()) -> Judged:
    """Judge a claim.

    Args:
        claim: the claim.
        cases: the evidence; a case without a value records a fruitless search.
        notes: notes to show beside the verdict.
    """
    ordered = sorted(cases, key=lambda case: _FIRST.index(case.basis))
    inside, between, outside = ([c for c in ordered if standing(claim, c) == name] for name in _COUNTED)
    uncounted = [case for case in cases if standing(claim, case) not in _COUNTED]
    sides = _Sides(inside=inside, between=between, outside=outside, uncounted=uncounted)
    deciding = [*inside, *between, *outside] or list(cases)
    verdict = _verdict(claim, sides)
    words, brief = (
        _words(claim, verdict, sides, Naming(claim=claim, most=most, ranges=ranges))
        for most, ranges in ((MOST_NAMED, True), (MOST_BRIEF, False))
    )
    return Judged(
        claim=claim, verdict=verdict, words=words, brief=brief, evidence=(*inside, *between, *outside, *uncounted),
        decided_by=tuple(basis for basis in BASES if any(case.basis == basis for case in deciding)), notes=tuple(notes),
    )  # fmt: skip


def _verdict(claim: Claim, sides: _Sides) -> str:
    if not sides.inside:
        return "does_not_hold" if sides.outside else "cannot_be_judged"
    if claim.reading == "up_to" and not _reached(claim, sides.inside):
        undecided = not sides.outside and any(
            reaches(claim, case.high or 0.0) for case in (*sides.inside, *sides.between)
        )
        return "cannot_be_judged" if undecided else "does_not_hold"
    if sides.outside or sides.open_parts or all(case.stands_in for case in sides.inside):
        return "holds_under_conditions"
    return "holds"


def _reached(claim: Claim, inside: Sequence[Case]) -> bool:
    return any(reaches(claim, case.mid or 0.0) for case in inside)


def _words(claim: Claim, verdict: str, sides: _Sides, named: Naming) -> Message:
    """Return the reason, with a sentence each about the deciding cases, the inconclusive cases and the open parts."""
    inside, between, outside = sides.inside, sides.between, sides.outside
    sentences: list[Message] = []
    if not inside and not between and not outside:
        return _undecided(sides, named)
    if not inside and outside:
        sentences.append(_refuted(claim, outside, named))
    elif claim.reading == "up_to" and inside and not _reached(claim, inside):
        sentences.append(_unreached(claim, verdict, sides, named))
        between = () if verdict == "cannot_be_judged" else between
    elif outside:
        sentences.append(Message.of("claim.holds_under_conditions", inside=named(inside), outside=named(outside)))
    elif inside and all(case.stands_in for case in inside):
        sentences.append(Message.of("claim.stands_in", cases=named(inside)))
    elif inside:
        key = "claim.holds_for" if between or sides.open_parts else "claim.holds"
        sentences.append(Message.of(key, cases=named(inside)))
    if between:
        sentences.append(Message.of("claim.too_wide", cases=named(between)))
    if sides.open_parts:
        sentences.append(Message.of("claim.open", why=sides.open_parts))
    return sentences[0] if len(sentences) == 1 else Message.of("claim.sentences", sentences=tuple(sentences))


def _refuted(claim: Claim, outside: Sequence[Case], named: Naming) -> Message:
    """Return the claimed figures and the side on which all cases are: a claim that says too little also misleads."""
    reach = span(claim, outside)
    own = [case for case in outside if case.claimed is not None or case.unit not in (None, claim.unit)]
    low, high = figures(claim, outside[0])
    if own or low is None or high is None:
        return Message.of("claim.does_not_hold", cases=named(outside), **reach)
    values = {
        "claimed": _from_to(quantity(low, claim.unit), quantity(high, claim.unit)),
        "reach": _from_to(reach["low"], reach["high"]), "cases": named(outside),
    }  # fmt: skip
    middles = [case.mid for case in outside if case.mid is not None]
    saving = claim.unit == "fraction_saved"
    if min(middles) > high:
        return Message.of("claim.saving_larger", **values) if saving else Message.of("claim.cases_larger", **values)
    if max(middles) < low:
        return Message.of("claim.saving_smaller", **values) if saving else Message.of("claim.cases_smaller", **values)
    return Message.of("claim.cases_apart", **values)


def _from_to(low: Message, high: Message) -> Message:
    return low if low == high else Message.of("claim.from_to", low=low, high=high)


def _undecided(sides: _Sides, named: Naming) -> Message:
    """Return the reason where no case counts: why parts are open, else the values beside."""
    beside = [case for case in sides.uncounted if case.mid is not None]
    if not sides.open_parts and beside:
        return Message.of("claim.only_beside", cases=named(beside))
    why = sides.open_parts or tuple(case.looked for case in sides.uncounted if case.looked is not None)
    return Message.of("claim.cannot_be_judged", why=why)


def _unreached(claim: Claim, verdict: str, sides: _Sides, named: Naming) -> Message:
    """Return why an `up_to` figure is wrong: cases that exceed it, or that none comes near it."""
    if sides.outside:
        return Message.of("claim.beyond", inside=named(sides.inside), outside=named(sides.outside))
    if verdict == "cannot_be_judged":
        return Message.of("claim.too_wide", cases=named([*sides.inside, *sides.between]))
    return Message.of("claim.not_reached", **span(claim, sides.inside))
