"""The short answer after its sentences: the comparisons, decisions and warnings that matter, on half a screen."""

from __future__ import annotations

from reports.document.facts import Facts, memory_range
from reports.document.text_facts import message_key, short_name_assumptions
from reports.sections.breakdown.limits import short_limits
from reports.sections.breakdown.minimum import dear_offer, unused
from reports.sections.breakdown.money import bill_in_words, more_carbon
from reports.sections.comparison.curve import short_curve
from reports.sections.comparison.gpus import gpus
from reports.sections.comparison.layout import layout_text
from reports.sections.comparison.precisions import short_table
from reports.sections.evidence.basis import gap_cell
from reports.sections.safety.known import closing
from reports.text.language import Span, Words
from reports.text.messages import sentence, sentences, with_messages
from reports.view import Block, Cell, Items, Prose, Table

NOTICES = frozenset({
    "warning.own_record", "warning.fleet_record", "warning.imported_record", "warning.shipped_record",
    "warning.calibration", "warning.network_file", "warning.network_record",
    "warning.trained_precision",
    "price.warning.vague_date", "price.warning.few_providers", "price.warning.few_providers_of",
    "price.warning.later_rows",
})  # fmt: skip
"""Warnings that name the evidence used and change no decision; only the full answer shows them."""

TOLD_BY_GAP = {
    "gap.price.stale.what": ("price.warning.historic",),
    "gap.price.stale_of.what": ("price.warning.historic",),
}
"""Warnings that a gap repeats, with advice."""


def brief(facts: Facts, words: Words) -> tuple[Block, ...]:
    """Return the blocks of the short answer, in order."""
    blocks: list[Block | None] = [
        short_table(facts, words), bill_in_words(facts, words), more_carbon(facts, words), _gpus_table(facts, words),
        short_curve(facts, words),
        short_limits(facts, words), _runs_as(facts, words), _warnings(facts, words), _short_names(facts, words),
        closing(facts, words),
        Prose(spans=words.spans("brief.more", file="plan.html"), tone="quiet"),
    ]  # fmt: skip
    return tuple(block for block in blocks if block is not None)


def _gpus_table(facts: Facts, words: Words) -> Table | None:
    """Return the GPUs side by side, if there are several."""
    section = gpus(facts, words)
    if section is None:
        return None
    return next(block for block in section.blocks if isinstance(block, Table))


def _runs_as(facts: Facts, words: Words) -> Prose | None:
    """Describe the layout, and the memory with its range and risk."""
    answer = facts.answer
    if answer is None or not answer["layout"]:
        return None
    used = words.figure("gib", memory_range(answer))
    assert used is not None  # a plan that fits has a memory
    capacity = words.value("gib", answer["memory_capacity_gib"])
    spans = words.spans("brief.runs_as", layout=layout_text(answer["layout"]), used=used, capacity=capacity)
    risk: tuple[Span, ...] = ()
    if answer["memory_risk"] is not None:
        risk = words.spans("memory.risk", risk=words.chance(answer["memory_risk"]))
    return Prose(spans=spans + risk)


def _warnings(facts: Facts, words: Words) -> Items | None:
    """List warnings that change a decision, capacity that is paid for and not used, and gaps."""
    doc = facts.doc
    worded = zip(sentences(doc, "warnings", words.lang), with_messages(doc, "warnings"), strict=True)
    hidden = NOTICES | {key for gap in doc["gaps"] for key in TOLD_BY_GAP.get(message_key(gap.get("what_message")), ())}
    cells = [
        Cell(text=sentence.text, foreign=sentence.foreign)
        for sentence, (_, message) in worded
        if message_key(message) not in hidden
    ]
    cells += [cell for cell in (unused(facts, words), dear_offer(facts, words)) if cell is not None]
    cells += [gap_cell(gap, words) for gap in doc["gaps"]]
    return Items(items=tuple(cells), title=words("brief.mind"), tone="bad") if cells else None


def _short_names(facts: Facts, words: Words) -> Prose | None:
    """Say how short names of models and GPUs were resolved."""
    texts = [sentence(row, "text", words.lang).text for row in short_name_assumptions(facts.doc)]
    return Prose(spans=(Span(text=" ".join(texts)),), tone="quiet") if texts else None
