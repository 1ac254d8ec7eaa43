"""Plans that run out of memory more often than allowed: their mark in a table, and the note that explains it."""

from __future__ import annotations

from collections.abc import Iterable

from reports.document.facts import Doc, Facts
from reports.text.language import Words


def marked(name: str, plan: Doc | None, facts: Facts, words: Words) -> str:
    """Return the name of a row, marked if its plan is risky; None means that the row has no plan."""
    return words("risky.mark", name=name) if plan is not None and facts.is_risky(plan) else name


def risk_notes(rows: Iterable[tuple[str, Doc]], facts: Facts, words: Words) -> tuple[str, ...]:
    """Return the explanation of the mark, for each row (its name and its plan) that has it."""
    return tuple(
        words("risky.note", name=name, risk=words.chance(plan["memory_risk"]))
        for name, plan in rows
        if facts.is_risky(plan)
    )
