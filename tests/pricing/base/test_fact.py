"""What the user says is evidence too."""

from __future__ import annotations

from planner.evidence import EvidenceKind
from pricing.base.fact import given


def test_what_a_flag_says_is_evidence_of_kind_given():
    evidence = given("pue:given", "PUE 1.1", "--pue", ("energy_mwh",))

    assert (evidence.kind, evidence.source, evidence.used_in) == (EvidenceKind.GIVEN, "--pue", ("energy_mwh",))
