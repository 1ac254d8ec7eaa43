"""The ledger: every claim with its verdict, from the evidence at hand."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from planner.claims.claim import Claim, load_claims
from planner.claims.decided import cost, memory, numbers, quality, speed
from planner.claims.decided.decision import Decider
from planner.claims.evidence.known import Known
from planner.claims.verdict import Judged, judge
from planner.errors import Message

DECIDERS: dict[str, Decider] = memory.DECIDERS | speed.DECIDERS | cost.DECIDERS | numbers.DECIDERS | quality.DECIDERS
"""What gathers the evidence of each claim, by its id."""


def verdict_on(claim: Claim, known: Known) -> Judged:
    """One claim with its verdict.

    Raises:
        UsageError, NoPlanError: a question of the ledger cannot be answered.
    """
    decision = DECIDERS[claim.id](known)
    on_cpu = any(case.basis == "measured" and case.stands_in for case in decision.cases)
    notes = [*decision.notes, Message.of("claim.note.cpu")] if on_cpu else decision.notes
    return judge(claim, decision.cases, notes)


def verdicts(
    known: Known, claims: Iterable[Claim] | None = None, begin: Callable[[Claim], None] = lambda claim: None
) -> Iterator[Judged]:
    """The claims with their verdicts, one after the other.

    Args:
        known: the evidence at hand.
        claims: those that are judged; None: all.
        begin: called before each, for a display of progress.
    """
    for claim in load_claims().values() if claims is None else claims:
        begin(claim)
        yield verdict_on(claim, known)
