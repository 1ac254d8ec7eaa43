"""The shipped verdicts, from the package's own evidence, which a report shows without judging again.

`make claims` writes `catalog/claim_verdicts.csv`; a test judges every claim again and compares with the file.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from functools import cache
from typing import Any

from planner.claims.claim import Claim, load_claims
from planner.claims.document import plain
from planner.claims.verdict import VERDICTS, Judged
from planner.csv_table import csv_table
from planner.lazy import dataclass
from planner.rows import CATALOG, Row, keyed, read_rows

FILE = CATALOG / "claim_verdicts.csv"
COLUMNS = ("id", "verdict", "decided_by", "words")


@dataclass(frozen=True, slots=True, kw_only=True)
class ShippedVerdict:
    """A claim with its verdict from the evidence that ships with the package."""

    claim: Claim
    verdict: str
    """One of `verdict.VERDICTS`."""
    decided_by: str
    words: dict[str, Any]
    """The short reason, as the JSON form of a message."""


def _verdict(row: Row) -> ShippedVerdict:
    claim = load_claims().get(row.text("id"))
    if claim is None:
        raise row.fail("id", "an id of claims.csv")
    try:
        words = json.loads(row.text("words"))
    except ValueError:
        raise row.fail("words", "a message as JSON") from None
    return ShippedVerdict(
        claim=claim, verdict=row.choice("verdict", VERDICTS), decided_by=row.text("decided_by"), words=words
    )


@cache
def load_verdicts() -> dict[str, ShippedVerdict]:
    """Return the shipped verdicts by claim, in the order of the claims.

    Raises:
        InputFileError: a row of the file is wrong.
    """
    return keyed(read_rows(FILE), _verdict)


def table_of(judged: Iterable[Judged]) -> str:
    """Return the text of the file for the given verdicts."""
    rows = (
        (entry.claim.id, entry.verdict, ", ".join(entry.decided_by),
         json.dumps(plain(entry.brief), ensure_ascii=False))
        for entry in judged
    )  # fmt: skip
    return csv_table(COLUMNS, rows, line_end="\n")
