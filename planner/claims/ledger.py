"""The ledger: every claim with its verdict from the available evidence."""

from __future__ import annotations

from planner.claims.claim import Claim
from planner.claims.decided import cost, memory, numbers, quality, speed
from planner.claims.decided.decision import Decider
from planner.claims.evidence.known import Known
from planner.claims.verdict import Judged, judge
from planner.errors import Message

DECIDERS: dict[str, Decider] = memory.DECIDERS | speed.DECIDERS | cost.DECIDERS | numbers.DECIDERS | quality.DECIDERS
"""Function that gathers the evidence on each claim, by the id of the claim."""


def verdict_on(claim: Claim, known: Known) -> Judged:
    """Return one claim with its verdict.

    Raises:
        UsageError, NoPlanError: a question of the ledger cannot be answered.
    """
    decision = DECIDERS[claim.id](known)
    on_cpu = any(case.basis == "measured" and case.stands_in for case in decision.cases)
    notes = [*decision.notes, Message.of("claim.note.cpu")] if on_cpu else decision.notes
    return judge(claim, decision.cases, notes)
