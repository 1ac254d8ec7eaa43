"""A figure about a place with its range and evidence."""

from __future__ import annotations

from planner.evidence import Estimate, Evidence, EvidenceKind, Gap
from planner.lazy import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """A figure about a place: PUE, an electricity price or a grid factor."""

    estimate: Estimate
    """Its range; the unit is that of the figure."""
    evidence: Evidence
    """Where it is from."""
    gap: Gap | None = None
    """What is missing, where the figure is that of another place or rests on a stale exchange rate."""


def given(id_: str, what: str, source: str, used_in: tuple[str, ...]) -> Evidence:
    """Evidence for a number that the user gave with the flag `source`."""
    return Evidence(id=id_, kind=EvidenceKind.GIVEN, what=what, source=source, used_in=used_in, public=True)
