"""Several GPUs side by side, if the question named more than one."""

from __future__ import annotations

from reports.charts import linear_ticks
from reports.document.facts import CARBON, COST, DURATION, ENERGY, QUANTITY, Doc, Facts
from reports.document.units import column_unit
from reports.sections.comparison.precisions import comparison_table
from reports.sections.comparison.risky import marked, risk_notes
from reports.text.language import Words
from reports.text.messages import sentence
from reports.text.names import pretty_gpu
from reports.text.numbers import Rung, axis_labels
from reports.view import Block, Cell, Column, RangeChart, Section, Table, TableRow
from reports.view.bars import range_bar, range_chart
from reports.view.cells import count_cell, figure_cell


def gpus(facts: Facts, words: Words) -> Section | None:
    """Show the requested precision on each GPU, and the whole comparison for each GPU other than the leading one."""
    if len(facts.gpus) < 2:
        return None
    asked = [plan for gpu in facts.gpus if (plan := facts.plan(facts.asked, gpu)) is not None]
    fitting = [plan for plan in asked if plan["fits"]]  # no bar for a GPU that trains in another precision
    metric = COST if any(plan[COST] for plan in fitting) else "gpu_hours"
    blocks: list[Block] = []
    if sum(bool(plan[metric]) for plan in fitting) > 1:
        blocks.append(_chart(facts, fitting, metric, words))
    blocks.append(_table(facts, words))
    for gpu in facts.gpus:
        if gpu != facts.gpu:
            blocks.append(comparison_table(facts, "plans", words, gpu, words("table.on_gpu", gpu=pretty_gpu(gpu))))
    names = words.join([pretty_gpu(gpu) for gpu in facts.gpus])
    lead = words.spans(
        "gpus.lead", precision=words.name("precision", facts.asked), names=names, first=_first(facts, words)
    )
    return Section(id="gpus", title=words("gpus.title"), lead=lead, blocks=tuple(blocks))


def _first(facts: Facts, words: Words) -> str:
    """Say why the first screen shows this GPU (`planner.answer.leading`)."""
    answer = facts.answer
    if answer is None or not answer[COST]:
        return words("gpus.first_asked")
    if facts.probability("budget") is not None and facts.probability("deadline") is None:
        return words("gpus.first_in_budget")
    unpriced = [pretty_gpu(gpu) for gpu in facts.unpriced()]
    return words("gpus.first_priced", names=words.join(unpriced)) if unpriced else words("gpus.first")


def _chart(facts: Facts, plans: list[Doc], metric: str, words: Words) -> RangeChart:
    priced = [plan for plan in plans if plan[metric]]
    rung = column_unit(facts, metric, [plan[metric] for plan in priced], words)
    top = linear_ticks(max(plan[metric]["high"] for plan in priced))
    bars = [
        range_bar(
            words("gpus.row", gpus=f"{plan['gpus']:,}", gpu=pretty_gpu(plan["gpu"])),
            figure,
            plan[metric],
            strong=plan["gpu"] == facts.gpu,
        )
        for plan in priced
        if (figure := words.figure(QUANTITY[metric], plan[metric], rung)) is not None
    ]
    title = words("chart.gpus", metric=words.name("metric", metric), precision=words.name("precision", facts.asked))
    return range_chart(title, bars, top, axis_labels(top, rung), words)


def _table(facts: Facts, words: Words) -> Table:
    metrics = [
        (metric, column_unit(facts, metric, [p[metric] for p in facts.doc["plans"] if p["fits"] and p[metric]], words))
        for metric in (DURATION, "gpu_hours", COST, ENERGY, CARBON)
        if any(plan["fits"] and plan[metric] for plan in facts.doc["plans"])
    ]
    rows = [_row(facts, gpu, metrics, words) for gpu in sorted(facts.gpus, key=lambda gpu: _is_unranked(facts, gpu))]
    heads = [words.head(words.name("metric", m), rung) for m, rung in metrics]
    return Table(
        caption=words("table.gpus", precision=words.name("precision", facts.asked)),
        columns=(
            Column(head=words("column.gpu")),
            Column(head=words("column.gpus"), numeric=True),
            *(Column(head=head, numeric=True) for head in heads),
        ),
        rows=tuple(rows),
        notes=_risks(facts, words),
    )


def _risks(facts: Facts, words: Words) -> tuple[str, ...]:
    """Explain the mark of a risky plan, for each GPU whose plan has it."""
    plans = [plan for gpu in facts.gpus if (plan := facts.plan(facts.asked_on(gpu), gpu)) is not None]
    return risk_notes([(pretty_gpu(plan["gpu"]), plan) for plan in plans], facts, words)


def _is_unranked(facts: Facts, gpu: str) -> bool:
    """Return whether a GPU cannot be ranked by cost: it has no price, another precision, or no plan."""
    plan = facts.plan(facts.asked, gpu)
    return plan is None or not plan[COST]


def _row(facts: Facts, gpu: str, metrics: list[tuple[str, Rung]], words: Words) -> TableRow:
    """Return a GPU with the requested precision, or with its best alternative and a note."""
    plan, lacking = facts.plan(facts.asked_on(gpu), gpu), facts.lacks(gpu)
    note = ""
    if lacking is not None and plan is not None:
        names = {name: words.name("precision", lacking[name]) for name in ("precision", "instead")}
        note = words("gpus.instead", **names)
    head = Cell(text=marked(pretty_gpu(gpu), plan, facts, words), detail=note)
    if plan is None or not plan["fits"]:
        reason, key = (lacking, "reason") if plan is None else (plan, "why_not")
        why = words("reason.unknown") if reason is None else sentence(reason, key, words.lang).text
        return TableRow(cells=(head, Cell(text=words("fits.no"), detail=why, tone="bad")))
    cells = [_cell(plan, metric, rung, words) for metric, rung in metrics]
    return TableRow(cells=(head, count_cell(plan["gpus"]), *cells), strong=gpu == facts.gpu)


def _cell(plan: Doc, metric: str, rung: Rung, words: Words) -> Cell:
    """Return a figure; an unknown cost is labelled as such and is not ranked."""
    if metric == COST and plan[metric] is None:
        return Cell(text=words("gpus.unpriced"), tone="quiet")
    return figure_cell(words.figure(QUANTITY[metric], plan[metric], rung), words)
