"""A figure about a place with its range and evidence."""

from __future__ import annotations

from planner.evidence import Estimate, Evidence, EvidenceKind, Gap
from planner.lazy import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """A figure about a place: PUE, an electricity price or a grid factor."""

    estimate: Estimate
    """Range of the figure, in its unit."""
    evidence: Evidence
    """Source of the figure."""
    gap: Gap | None = None
    """What is missing, where the figure is another place's or rests on a stale exchange rate."""


def given(id_: str, what: str, source: str, used_in: tuple[str, ...]) -> Evidence:
    """Return evidence for a number that the user gave with the flag `source`."""
    return Evidence(id=id_, kind=EvidenceKind.GIVEN, what=what, source=source, used_in=used_in, public=True)
