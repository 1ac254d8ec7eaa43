"""The JSON document `mpplan.claims/1`: each claim with its verdict, the reason, and every piece of evidence."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from planner.claims.case import Case
from planner.claims.claim import Claim
from planner.claims.standing import figures, standing
from planner.claims.verdict import Judged
from planner.errors import Message

CLAIMS_SCHEMA = "mpplan.claims/1"


def to_document(judged: Iterable[Judged]) -> dict[str, Any]:
    """Return the document as plain JSON values.

    Messages are `{"key", "values"}`, which `mpplan.api` puts into words.
    """
    return {"schema": CLAIMS_SCHEMA, "claims": [_claim(entry) for entry in judged]}


def _claim(judged: Judged) -> dict[str, Any]:
    claim = judged.claim
    claimed = {"low": claim.low, "high": claim.high, "unit": claim.unit, "reading": claim.reading,
               "tolerance_ratio": claim.tolerance_ratio}  # fmt: skip
    return {
        "id": claim.id,
        "topic": claim.topic,
        "claim": claim.text["en"],
        "claimed": claimed,
        "verdict": judged.verdict,
        "decided_by": ", ".join(judged.decided_by),
        "words": plain(judged.words),
        "would_decide": claim.decides,
        "notes": [plain(note) for note in judged.notes],
        "evidence": [_case(claim, case) for case in judged.evidence],
        "source": claim.source,
        "date": claim.date,
    }


def _case(claim: Claim, case: Case) -> dict[str, Any]:
    stands, claimed = standing(claim, case), figures(claim, case)
    return {
        "what": case.what,
        "basis": case.basis,
        "low": case.low,
        "mid": case.mid,
        "high": case.high,
        "unit": case.unit or claim.unit,
        "count": case.count,
        "claimed": {"low": claimed[0], "high": claimed[1]},
        "stands": stands,
        "agrees": {"agrees": True, "disagrees": False}.get(stands),
        "own": case.own,
        "stands_in": case.stands_in,
        "looked_at": None if case.looked is None else plain(case.looked),
        "source": case.source,
    }


def plain(value: Any) -> Any:
    """Convert a message, or a value within one, to JSON values."""
    if isinstance(value, Message):
        return {"key": value.key, "values": {name: plain(inner) for name, inner in value.values}}
    if isinstance(value, list | tuple):
        return [plain(inner) for inner in value]
    return value
