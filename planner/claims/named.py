"""Cases in words: by name with their values, the first of many."""

from __future__ import annotations

from collections.abc import Sequence

from planner.claims.case import Case
from planner.claims.claim import UNITS, Claim
from planner.errors import Message
from planner.lazy import dataclass

MOST_NAMED = 4
"""Cases that a sentence names; the others are counted."""
MOST_BRIEF = 2
"""The same of the short sentence of a report."""
NARROW = 0.02
"""Width of a range over its middle from which it is named."""
LEAST_BYTES = 0.1
"""Bytes of state per parameter below which an optimizer keeps rows and columns, or nothing: not a figure of its own."""
LABELS = {
    "power per GPU": Message.of("claim.label.gpu_power"),
    "smallest value that overflows": Message.of("claim.label.overflow"),
}
"""Cases whose name is in words: each with the message that has them in every language."""
_PLACES = {
    "fraction_saved": 2, "fraction_added": 2, "memory_share": 2, "recovered": 3, "points": 2, "share_lost": 4,
    "scale": 0, "steps": 0,
}  # fmt: skip
"""Decimal places, as their messages show them: what rounds to nothing has no sign."""


def label(what: str) -> Message | str:
    """The name of a case: a message where it is in words, else as it is in every language."""
    return LABELS.get(what, what)


def quantity(value: float, unit: str) -> Message:
    """A value in its unit."""
    if unit == "bytes_per_param" and value < LEAST_BYTES:
        return Message.of("claim.unit.bytes_under", value=LEAST_BYTES)
    if unit == "points":
        value *= 100.0
    places = _PLACES.get(unit)
    shown = float(f"{value:.6g}") if places is None else round(value, places) + 0.0
    return Message.of(UNITS[unit], value=shown)


def span(claim: Claim, cases: Sequence[Case]) -> dict[str, Message]:
    """The smallest and the largest of cases in the unit of the claim, or, where none is, of the first."""
    units = [case.unit or claim.unit for case in cases]
    unit = claim.unit if claim.unit in units else units[0]
    values = [case.mid for case, own in zip(cases, units, strict=True) if case.mid is not None and own == unit]
    return {"low": quantity(min(values), unit), "high": quantity(max(values), unit)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Naming:
    """How the cases of a claim are named in a sentence."""

    claim: Claim
    most: int
    """Cases that are named; the others are counted."""
    ranges: bool
    """Whether with their ranges."""

    def __call__(self, cases: Sequence[Case]) -> Message:
        """The first cases by name with their values, and how many more there are."""
        first = tuple(self._worded(case) for case in cases[: self.most])
        more = len(cases) - self.most
        if more > 0:
            return Message.of("claim.cases_more", cases=first, n=more)
        return Message.of("claim.cases", cases=first)

    def _worded(self, case: Case) -> Message:
        """A case with its value, and with the range where it has one that can be seen."""
        assert case.mid is not None
        unit, mid = case.unit or self.claim.unit, case.mid
        low, high = (mid if end is None else end for end in (case.low, case.high))
        value = quantity(mid, unit)
        if not self.ranges or high - low <= NARROW * abs(mid):
            return Message.of("claim.case", what=label(case.what), value=value)
        ends = {"low": quantity(low, unit), "high": quantity(high, unit)}
        return Message.of("claim.case_range", what=label(case.what), value=value, **ends)
