"""Claims of the literature in words: the verdict, the relation of a case to its claim, its figures and its source."""

from __future__ import annotations

from planner.claims.case import Case
from planner.claims.claim import Claim
from planner.claims.named import quantity
from planner.claims.standing import standing
from planner.claims.verdict import VERDICTS, Judged
from reports.text.language import words_for
from reports.text.messages import word

LANG = "en"
"""Language of the page, the terminal and the JSON; a report words verdicts in its own language."""


def verdict_words(verdict: str) -> str:
    """Word a verdict, for example `holds under conditions`."""
    return words_for(LANG).name("verdict", verdict)


def stands_words(claim: Claim, case: Case) -> str:
    """Word the relation of a case to its claim, for example `yes` or `too wide`."""
    return words_for(LANG).name("stands", standing(claim, case))


def counts(judged: list[Judged]) -> list[tuple[str, int]]:
    """Return each verdict in words with the number of claims that have it."""
    return [(verdict_words(name), sum(entry.verdict == name for entry in judged)) for name in VERDICTS]


def ends(claim: Claim, case: Case) -> tuple[str, str, str]:
    """Return low end, middle and high end in the unit of the case; empty if there is no value or no range."""
    if case.mid is None:
        return "", "", ""
    low, mid, high = (
        word(quantity(case.mid if end is None else end, case.unit or claim.unit), LANG)
        for end in (case.low, case.mid, case.high)
    )
    return ("", mid, "") if case.low == case.high else (low, mid, high)


def source_of(case: Case) -> str:
    """Return the source, with a command formatted as code; without a value, the reason precedes it."""
    source = f"`{case.source}`" if case.source.startswith("mpplan ") else case.source
    return source if case.looked is None else f"{word(case.looked, LANG)} {source}"
