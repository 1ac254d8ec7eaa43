"""Claims of the literature about plans like this one, with the shipped verdicts (`mpplan claims`)."""

from __future__ import annotations

from planner.claims.shipped import ShippedVerdict, load_verdicts
from reports.document.facts import Facts
from reports.text.clean import clean
from reports.text.language import Words
from reports.text.messages import word
from reports.view import Cell, Column, Section, Table, TableRow

MOST = 3
"""Maximum number of claims shown, to keep the page short."""
TONES = {"holds": "good", "does_not_hold": "bad"}
ORDER = ("precision", "model", "optimizer", "gpu", "act_ckpt", "zero")
"""Properties that a claim can share with a plan, most relevant first: readers care most about the precision."""


def claims(facts: Facts, words: Words) -> Section | None:
    """Show claims about this plan's precision, model, optimizer, GPU or layout."""
    common = touching(facts)
    if not common:
        return None
    shown = common[:MOST]
    rows = tuple(
        TableRow(
            cells=(
                Cell(text=entry.claim.text[words.lang], detail=entry.claim.id),
                Cell(text=words.name("verdict", entry.verdict), tone=TONES.get(entry.verdict, "")),
                Cell(text=clean(word(entry.words, words.lang))),
            )
        )
        for entry in shown
    )
    table = Table(
        caption=words("table.claims"),
        columns=tuple(Column(head=words(f"column.{head}")) for head in ("claim", "verdict", "because")),
        rows=rows,
    )
    lead = words.spans(
        "claims.lead" if len(shown) < len(common) else "claims.lead_all", n=f"{len(common):,}",
        total=f"{len(load_verdicts()):,}", shown=f"{len(shown):,}",
    )  # fmt: skip
    return Section(id="claims", title=words("claims.title"), lead=lead, blocks=(table,))


def touching(facts: Facts) -> list[ShippedVerdict]:
    """Return the claims that share a property with the requested plan, most relevant first."""
    tags = _tags(facts)
    ranked = []
    for entry in load_verdicts().values():
        common = [ORDER.index(tag.split(":")[0]) for tag in entry.claim.shown_with if tag in tags]
        if common:
            ranked.append((min(common), -len(common), entry.claim.id, entry))
    return [row[-1] for row in sorted(ranked, key=lambda row: row[:-1])]


def _tags(facts: Facts) -> set[str]:
    """Return the plan's properties as tags, in the terms of the claims' column `shown_with`."""
    plan = facts.answer
    if plan is None:
        return set()
    layout = plan["layout"] or {}
    known = {
        "model": facts.doc["model"]["name"], "optimizer": facts.given("optimizer"), "gpu": plan["gpu"],
        "act_ckpt": layout.get("act_ckpt"), "zero": layout.get("zero"), "precision": plan["precision"],
    }  # fmt: skip
    return {f"{name}:{value}" for name, value in known.items() if value is not None}
