"""`mpplan claims` as a function: the ledger judged by the shipped evidence and by the user's own record."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from planner.errors import UsageError

if TYPE_CHECKING:
    from planner.claims.claim import Claim
    from planner.claims.evidence.known import Known
    from planner.claims.verdict import Judged
    from planner.records.store import StoredRecord


def claims(
    only: Iterable[str] = (),
    *,
    topics: Iterable[str] = (),
    records: str | None = None,
    numerics: str | None = None,
    watch: Callable[[int], Callable[[int], None] | None] = lambda total: None,
) -> list[Judged]:
    """Return claims of the literature, each with its verdict and evidence.

    Args:
        only: claim ids; empty: all.
        topics: topics; empty: all.
        records: a record file; None: the user's newest record, if there is one.
        numerics: a document of `mpplan numerics --json`; None: the user's newest such run, else the shipped results.
        watch: called with the number of claims; returns a callback for the number judged so far, or None.

    Raises:
        UsageError: no such claim or topic, or a file cannot be read.
        InputFileError: no line of the record can be used, or the document is not a numerics document.
    """
    from planner.claims.ledger import verdict_on

    chosen = chosen_claims(only, topics)
    known = known_here(records, numerics)
    judged = []
    progress = watch(len(chosen))
    for number, claim in enumerate(chosen, 1):
        judged.append(verdict_on(claim, known))
        if progress is not None:
            progress(number)
    return judged


def chosen_claims(only: Iterable[str], topics: Iterable[str]) -> list[Claim]:
    """Return the claims with these ids and topics, each once.

    Raises:
        UsageError: no such claim or topic.
    """
    from planner.claims.claim import find_claim, load_claims

    named = [find_claim(name) for name in only] or list(load_claims().values())
    known, wanted = dict.fromkeys(claim.topic for claim in load_claims().values()), list(topics)
    for topic in wanted:
        if topic not in known:
            raise UsageError(f"unknown topic `{topic}`", hint=f"topics are {', '.join(known)}")
    return [claim for claim in {claim.id: claim for claim in named}.values() if not wanted or claim.topic in wanted]


def known_here(records: str | None = None, numerics: str | None = None) -> Known:
    """Return the evidence at hand: the planner, shipped data, a record, and training runs in lower precisions.

    Raises:
        UsageError, InputFileError: as `claims`.
    """
    from mpplan.api.answer import estimate, estimate_briefly
    from mpplan.api.claims.record import named_training, newest_training
    from planner.claims.evidence.known import Known

    trained = newest_training() if numerics is None else named_training(numerics)
    read = _records(records)
    points = tuple(point for record in read for point in record.file.latest())
    return Known(
        ask=estimate, ask_briefly=estimate_briefly, points=points, record=" and ".join(record.name for record in read),
        trained=trained,
    )  # fmt: skip


def _records(records: str | None) -> list[StoredRecord]:
    """Return the named record; else the user's newest record and the newest record measured for claims.

    Records of training alone are skipped: they hold no rates, and would take precedence over a record that does.
    """
    from mpplan.api.claims.record import newest_claims_record
    from planner.errors import InputFileError
    from planner.records.home import any_records, record_path
    from planner.records.store import list_records, newest_whole, open_record

    if records is not None:
        record = open_record(record_path(records))
        if not record.file.measurements:
            raise InputFileError(f"{records}:1: expected a measurement record", hint="`mpplan check FILE` says more")
        return [record]
    measured = newest_claims_record()
    newest = [] if measured is None else [measured]
    if not any_records():
        return newest
    own = [
        summary for summary in list_records()
        if not summary.shipped and summary.facts.problem is None and not summary.facts.numerics_only
    ]  # fmt: skip
    whole = newest_whole(own)
    return newest if whole is None else [*newest, open_record(whole.path)]


def to_claims_document(judged: Iterable[Judged]) -> dict[str, Any]:
    """Return the document `mpplan.claims/1`, worded in English.

    Raises:
        InternalError: a range in it is out of order.
    """
    from mpplan.api.document import worded
    from planner.answer.invariants import require_ordered
    from planner.claims.document import to_document

    document: dict[str, Any] = worded(to_document(judged))
    require_ordered(document)
    return document
