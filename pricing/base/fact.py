"""A fact of a place with its range, its evidence, and what is doubtful about it."""

from __future__ import annotations

from dataclasses import dataclass

from planner.evidence import Estimate, Evidence, EvidenceKind, Gap


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """One number of a place."""

    estimate: Estimate
    evidence: Evidence
    gap: Gap | None = None


def given(id_: str, what: str, source: str, used_in: tuple[str, ...]) -> Evidence:
    """Evidence for what the user said with a flag."""
    return Evidence(id=id_, kind=EvidenceKind.GIVEN, what=what, source=source, used_in=used_in)
