"""Put cases into words: by name with their values, at most the first few."""

from __future__ import annotations

from collections.abc import Sequence

from planner.claims.case import Case
from planner.claims.claim import UNITS, Claim
from planner.errors import Message
from planner.lazy import dataclass

MOST_NAMED = 4
"""Number of cases that a sentence names; the others are counted."""
MOST_BRIEF = 2
"""Number of cases that the short sentence of a report names."""
NARROW = 0.02
"""Width of a range over its middle up to which the range is not shown."""
LEAST_BYTES = 0.1
"""Bytes of state per parameter below which an optimizer keeps only rows and columns, or nothing: shown as a bound."""
LABELS = {
    "power per GPU": Message.of("claim.label.gpu_power"),
    "smallest value that overflows": Message.of("claim.label.overflow"),
}
"""Cases whose name is a phrase, each with its message, which exists in every language."""
_PLACES = {
    "fraction_saved": 2, "fraction_added": 2, "memory_share": 2, "recovered": 3, "points": 2, "share_lost": 4,
    "scale": 0, "steps": 0,
}  # fmt: skip
"""Decimal places in the messages of these units; a value that rounds to zero gets no sign."""


def label(what: str) -> Message | str:
    """Return the name of a case: a message where it is a phrase, else the technical name itself."""
    return LABELS.get(what, what)


def quantity(value: float, unit: str) -> Message:
    """Return a value in its unit."""
    if unit == "bytes_per_param" and value < LEAST_BYTES:
        return Message.of("claim.unit.bytes_under", value=LEAST_BYTES)
    if unit == "points":
        value *= 100.0
    places = _PLACES.get(unit)
    shown = float(f"{value:.6g}") if places is None else round(value, places) + 0.0
    return Message.of(UNITS[unit], value=shown)


def span(claim: Claim, cases: Sequence[Case]) -> dict[str, Message]:
    """Return the smallest and largest case in the unit of the claim, or in the first case's unit where none has it."""
    units = [case.unit or claim.unit for case in cases]
    unit = claim.unit if claim.unit in units else units[0]
    values = [case.mid for case, own in zip(cases, units, strict=True) if case.mid is not None and own == unit]
    return {"low": quantity(min(values), unit), "high": quantity(max(values), unit)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Naming:
    """How the cases of a claim are named in a sentence."""

    claim: Claim
    most: int
    """Number of cases that are named; the others are counted."""
    ranges: bool
    """Whether cases are shown with their ranges."""

    def __call__(self, cases: Sequence[Case]) -> Message:
        """Return the first cases by name with their values, and the number of the others."""
        first = tuple(self._worded(case) for case in cases[: self.most])
        more = len(cases) - self.most
        if more > 0:
            return Message.of("claim.cases_more", cases=first, n=more)
        return Message.of("claim.cases", cases=first)

    def _worded(self, case: Case) -> Message:
        """Return a case with its value, and with its range where that is wide enough to show."""
        assert case.mid is not None
        unit, mid = case.unit or self.claim.unit, case.mid
        low, high = (mid if end is None else end for end in (case.low, case.high))
        value = quantity(mid, unit)
        if not self.ranges or high - low <= NARROW * abs(mid):
            return Message.of("claim.case", what=label(case.what), value=value)
        ends = {"low": quantity(low, unit), "high": quantity(high, unit)}
        return Message.of("claim.case_range", what=label(case.what), value=value, **ends)
