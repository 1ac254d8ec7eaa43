"""Safety of the precisions: their known effects on the loss, with charts if `mpplan numerics` was run."""

from __future__ import annotations

from reports.document.facts import Facts
from reports.sections.safety.drawn import histograms, intervals, layers, scale
from reports.sections.safety.fronts import fronts
from reports.sections.safety.known import KNOWN, parity_rows, parity_table, untested
from reports.sections.safety.trained import trained_table
from reports.text.clean import clean
from reports.text.language import Words
from reports.view import Block, Prose, Section


def safety(facts: Facts, words: Words) -> Section | None:
    """Show parity, the rate per nat, histograms, the loss scale's path, sensitive layers and the mixtures' front."""
    table = parity_table(facts, words)
    if table is None:
        return None
    rows = parity_rows(facts)
    known = [words.name("precision", row["precision"]) for row in rows if row["basis"] in KNOWN]
    names = untested(rows, words)
    lead = words.spans("safety.lead", known=words.join(known)) if known else words.spans("safety.lead_none")
    if names:
        lead += words.spans("safety.untested", names=names)
    blocks: list[Block | None] = [table, Prose(spans=words.spans("parity.not_yours"), tone="note")]
    shown = facts.doc.get("numerics")
    if shown:
        task = words("parity.own_task") if shown["task"] == "own" else clean(shown["task"])
        cut = "" if shown["complete"] else words("safety.cut")
        blocks.append(
            Prose(spans=words.spans("safety.drawn", task=task, device=clean(shown["device"]), cut=cut), tone="lead")
        )
        blocks += [histograms(shown, words), scale(shown, words), intervals(shown, words), trained_table(shown, words)]
        blocks += [layers(shown, words), *fronts(shown, words, {plan["precision"] for plan in facts.fitting()})]
    present = tuple(block for block in blocks if block is not None)
    return Section(id="safety", title=words("safety.title"), lead=lead, blocks=present)
