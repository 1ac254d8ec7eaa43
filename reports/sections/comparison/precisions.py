"""All precisions side by side: the chart and table of the first screen, and the two fair views."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from reports.charts import Bar, linear_ticks, scale_top
from reports.document.facts import CARBON, COST, DURATION, ENERGY, QUANTITY, Doc, Facts, memory_range
from reports.document.units import column_unit
from reports.sections.comparison.bf16_fp16 import apart_notes
from reports.sections.comparison.layout import global_batch, layout_text
from reports.sections.comparison.risky import marked, risk_notes
from reports.text.language import Words
from reports.text.messages import sentence
from reports.text.names import pretty_gpu
from reports.text.numbers import Rung, axis_labels
from reports.text.saving import shown_saving
from reports.view import Block, Cell, Column, RangeChart, Section, Table, TableRow
from reports.view.bars import range_bar, range_chart
from reports.view.cells import count_cell, figure_cell, none_cell, saving_tone

T = TypeVar("T")

OVERVIEW = (COST, DURATION, ENERGY)
ALL_METRICS = (*OVERVIEW, "gpu_hours", CARBON)


def metric_chart(facts: Facts, metric: str, words: Words, view: str = "plans", gpu: str | None = None) -> RangeChart:
    """Return bars of one metric for the precisions that fit; the others are named briefly, without a bar."""
    plans = facts.plans(gpu, view)
    shown = [plan for plan in plans if plan["fits"] and plan[metric]]
    rung = column_unit(facts, metric, [plan[metric] for plan in shown], words)
    top = linear_ticks(
        scale_top(
            [plan[metric]["high"] for plan in shown if not facts.is_reference(plan)],
            [plan[metric]["high"] for plan in shown if facts.is_reference(plan)],
        )
    )
    bars = [_bar(facts, plan, metric, top[-1], rung, words) for plan in plans]
    bars += [
        Bar(
            label=words.name("precision", entry["precision"]),
            text=words(facts.worded("fits.unsupported", "fits.left_out")),
            missing=True,
        )
        for entry in facts.unsupported(gpu)
    ]
    key = "chart.metric" if view == "plans" else "chart.metric_in_time"
    title = words(key, metric=words.name("metric", metric))
    return range_chart(title, bars, top, axis_labels(top, rung), words)


def _bar(facts: Facts, plan: Doc, metric: str, top: float, rung: Rung, words: Words) -> Bar:
    label = words.name("precision", plan["precision"])
    figure = words.figure(QUANTITY[metric], plan[metric], rung) if plan["fits"] else None
    if figure is None:
        return Bar(label=label, text=words("none") if plan["fits"] else words("fits.no"), missing=True)
    return range_bar(
        label,
        figure,
        plan[metric],
        strong=plan["precision"] == facts.asked,
        quiet=facts.is_reference(plan),
        beyond=plan[metric]["high"] > top,
    )


def metric_columns(
    facts: Facts, plans: list[Doc], metrics: tuple[str, ...], words: Words
) -> list[tuple[str, Column, Rung]]:
    """Return the metrics that at least one of the plans has, each with its column and the column's unit."""
    columns = []
    for metric in metrics:
        values = [plan[metric] for plan in plans if plan[metric]]
        if values:
            rung = column_unit(facts, metric, values, words)
            head = words.head(words.name("metric", metric), rung)
            columns.append((metric, Column(head=head, numeric=True), rung))
    return columns


def overview_table(facts: Facts, words: Words) -> Table | None:
    """Return cost, time and energy of each precision on the same GPUs."""
    if not facts.plans():
        return None
    metrics = metric_columns(facts, facts.fitting(), OVERVIEW, words)
    rows = [_row(facts, plan, [(m, r) for m, _, r in metrics], words) for plan in facts.plans()]
    return Table(
        caption=words("table.overview", **_setting(facts, "plans", words)),
        columns=(Column(head=words("column.precision")), *([c for _, c, _ in metrics] or [_reason(words)])),
        rows=tuple(rows + left_out_rows(facts, words)),
        notes=_risks(facts, facts.plans(), words),
        wide=False,
    )


def _reason(words: Words) -> Column:
    """Return the column of a table in which no plan has figures."""
    return Column(head=words("column.because"))


def _row(facts: Facts, plan: Doc, metrics: list[tuple[str, Rung]], words: Words) -> TableRow:
    name = Cell(text=marked(words.name("precision", plan["precision"]), plan, facts, words))
    if not plan["fits"]:
        reason = Cell(text=words("fits.no"), detail=sentence(plan, "why_not", words.lang).text, tone="bad")
        return TableRow(cells=(name, reason))
    cells = [figure_cell(words.figure(QUANTITY[m], plan[m], rung), words) for m, rung in metrics]
    return TableRow(cells=(name, *cells), strong=plan["precision"] == facts.asked_on(plan["gpu"]))


def _risks(facts: Facts, plans: list[Doc], words: Words) -> tuple[str, ...]:
    """Explain the mark of a risky plan, for each of the plans that has it."""
    return risk_notes([(words.name("precision", plan["precision"]), plan) for plan in plans], facts, words)


def left_out_rows(
    facts: Facts, words: Words, gpu: str | None = None, only: tuple[str, ...] | None = None
) -> list[TableRow]:
    """Return the precisions that the GPU does not support, each with the reason; `only` restricts the precisions."""
    return [
        TableRow(
            cells=(
                Cell(text=words.name("precision", entry["precision"])),
                Cell(
                    text=words(facts.worded("fits.unsupported", "fits.left_out")),
                    detail=sentence(entry, "reason", words.lang).text,
                    tone="bad",
                ),
            )
        )
        for entry in facts.unsupported(gpu)
        if only is None or entry["precision"] in only
    ]


COMPARED = ("bf16", "fp8", "tf32")
"""Usual comparisons: the standard precision, the next lower one, and the one that "FP32" runs mostly use."""


def short_table(facts: Facts, words: Words) -> Table:
    """Return the requested precision beside those with which people and the headline compare it.

    Notes say why a narrow type is slower than BF16, if its products are the cause, and why FP16 differs from BF16.
    """
    lead = facts.lead_metric()
    metrics = OVERVIEW if lead in OVERVIEW else (*OVERVIEW, lead)
    shown = (facts.asked, facts.narrowest, *facts.compared(lead), *COMPARED)
    table = comparison_table(facts, "plans", words, metrics=metrics, only=shown)
    plans = [plan for plan in facts.plans() if plan["precision"] in shown]
    slower = [plan for plan in plans if _loses_in_products(facts, plan)]
    return replace(table, notes=(*table.notes, *narrow_notes(slower, words), *apart_notes(facts, plans, words)))


def _loses_in_products(facts: Facts, plan: Doc) -> bool:
    """Return whether a plan takes more GPU-hours than BF16's, and its longest product more time than in BF16."""
    wide, gain = facts.plan("bf16"), plan.get("narrow_gain")
    if wide is None or not gain or not (wide["fits"] and plan["fits"]):
        return False
    return bool(gain["gain_ratio"] < 1.0 and plan["gpu_hours"]["mid"] > wide["gpu_hours"]["mid"])


def comparison_table(
    facts: Facts,
    view: str,
    words: Words,
    gpu: str | None = None,
    caption: str = "",
    *,
    metrics: tuple[str, ...] = ALL_METRICS,
    only: tuple[str, ...] | None = None,
) -> Table:
    """Return the figures of the precisions of one view, with the saving of the requested precision over each.

    Args:
        facts: the document.
        view: `plans` or `same_deadline`.
        words: words of the language.
        gpu: GPU to show; None: the leading one.
        caption: caption of the table; empty: that of the view.
        metrics: figures to show.
        only: precisions to show; None: all.
    """
    plans = [plan for plan in facts.plans(gpu, view) if only is None or plan["precision"] in only]
    columns = metric_columns(facts, [plan for plan in plans if plan["fits"]], metrics, words)
    lead = COST if any(m == COST for m, _, _ in columns) else "gpu_hours"
    first = sum(m in OVERVIEW for m, _, _ in columns)
    counted = view != "plans"
    rows = []
    for plan in plans:
        row = _row(facts, plan, [(m, r) for m, _, r in columns], words)
        if plan["fits"]:
            count = [count_cell(plan["gpus"])] if counted else []
            saving = _saving_cell(facts, view, lead, plan, words, gpu)
            cells = _with_saving([row.cells[0], *count], row.cells[1:], saving, first)
            row = TableRow(cells=cells, strong=row.strong)
        rows.append(row)
    heads = [Column(head=words("column.precision"))]
    left_out = left_out_rows(facts, words, gpu, only)
    if not columns:
        reasons = (*heads, _reason(words))
        return Table(caption=caption or _caption(facts, view, words), columns=reasons, rows=tuple(rows + left_out))
    heads += [Column(head=words("column.gpus"), numeric=True)] if counted else []
    asked = words.name("precision", facts.asked_on(gpu))
    saved = Column(head=words("column.saving", asked=asked, metric=words.name("metric", lead)), numeric=True)
    return Table(
        caption=caption or _caption(facts, view, words),
        columns=_with_saving(heads, [column for _, column, _ in columns], saved, first),
        rows=tuple(rows + left_out),
        notes=(*_risks(facts, plans, words), *_batches(facts, plans, view, words, gpu)),
    )


def _batches(facts: Facts, plans: list[Doc], view: str, words: Words, gpu: str | None) -> tuple[str, ...]:
    """Say which plans have a different batch from the requested precision's plan, and why."""
    asked = facts.plan(facts.asked_on(gpu), gpu, view)
    usual = None if asked is None else global_batch(asked)
    return tuple(
        words(
            facts.worded("batch.other", "batch.other_images"),
            name=words.name("precision", plan["precision"]), batch=f"{batch:,}", usual=f"{usual:,}",
            gpus=f"{plan['gpus']:,}",
        )
        for plan in plans
        if usual is not None and (batch := global_batch(plan)) not in (None, usual)
    )  # fmt: skip


def _with_saving(heads: Sequence[T], figures: Sequence[T], saving: T, first: int) -> tuple[T, ...]:
    """Return the cells of a row, or the columns, with the saving inserted after the first few figures."""
    return (*heads, *figures[:first], saving, *figures[first:])


def _setting(facts: Facts, view: str, words: Words) -> dict[str, str]:
    """Return the GPUs and the deadline of a view, for its sentences."""
    first, deadline = facts.plans(view=view)[0], facts.doc.get("deadline_days")
    return {
        "gpus": f"{first['gpus']:,}",
        "gpu": pretty_gpu(first["gpu"]),
        "days": _deadline(facts, float(deadline), words) if deadline else words("none"),
    }


def _deadline(facts: Facts, deadline_days: float, words: Words) -> str:
    """Return the deadline of the view; if the user set none, also which plan's duration it is."""
    days, confidence = words.duration(deadline_days), facts.doc.get("confidence")
    if facts.given("deadline") is not None or not isinstance(confidence, int | float):
        return days
    precision, first = words.name("precision", facts.asked), facts.doc["plans"][0]["gpu"]
    plan = precision if len(facts.gpus) < 2 else words("gpus.plan", precision=precision, gpu=pretty_gpu(first))
    return words("deadline.kept", days=days, plan=plan, chance=words.chance(float(confidence)))


def _caption(facts: Facts, view: str, words: Words) -> str:
    gpus, node = facts.given("gpus"), facts.given("gpus_per_node")
    in_part = view == "same_deadline" and isinstance(gpus, int) and isinstance(node, int) and gpus < node
    return words(f"table.{view}_part" if in_part else f"table.{view}", **_setting(facts, view, words))


def _throughputs(facts: Facts) -> tuple[tuple[str, str, Callable[[Doc], Any]], ...]:
    """Return the columns of throughput: images/s, tokens/s, or for an encoder tokens/s and sequences/s."""
    tokens = ("tokens", "tokens_per_s", lambda p: p["tokens_per_s_per_gpu"])
    if facts.sees_images:
        return (("tokens", "images_per_s", lambda p: p["samples_per_s_per_gpu"]),)
    if facts.doc["model"].get("kind") != "encoder":
        return (tokens,)
    return (tokens, ("samples", "sequences_per_s", lambda p: p.get("samples_per_s_per_gpu")))


def runs_table(facts: Facts, words: Words) -> Table:
    """Return how each precision runs: layout, step time, rates, memory."""
    plans = facts.fitting()
    kinds = (("step", "seconds", _step), *_throughputs(facts),
             ("tflops", "tflops", lambda p: p["tflops_per_gpu"]), ("mfu", "percent", lambda p: p["mfu"]))  # fmt: skip
    rungs = {name: words.shared(kind, [read(plan) for plan in plans]) for name, kind, read in kinds}
    gib = words.ladder("gib")[0]
    rows = []
    for plan in plans:
        cells = [figure_cell(words.figure(kind, read(plan), rungs[name]), words) for name, kind, read in kinds]
        cells.append(figure_cell(words.figure("gib", memory_range(plan), gib), words))
        layout = Cell(text=layout_text(plan["layout"]) if plan["layout"] else words("none"))
        name_cell = Cell(text=words.name("precision", plan["precision"]))
        rows.append(TableRow(cells=(name_cell, layout, *cells), strong=plan["precision"] == facts.asked))
    heads = [words.head(words(f"runs.{name}"), rungs[name]) for name, _, _ in kinds]
    heads.append(words.head(words("runs.memory"), gib))
    return Table(
        caption=words("table.runs"),
        columns=(
            Column(head=words("column.precision")),
            Column(head=words("column.layout")),
            *(Column(head=head, numeric=True) for head in heads),
        ),
        rows=tuple(rows),
        notes=(*narrow_notes(plans, words), *apart_notes(facts, plans, words)),
    )


def narrow_notes(plans: Sequence[Doc], words: Words) -> tuple[str, ...]:
    """Return each narrow type's gain for its plan's largest product, and the hidden size from which it pays off."""
    notes = []
    for plan in plans:
        gain = plan.get("narrow_gain")
        if not gain or not gain.get("hidden"):
            continue  # an older answer has the sizes of another product
        pays = gain["pays_from_hidden"]
        key = "gains" if gain["gain_ratio"] >= 1.0 else "loses" if pays is None else "pays_later"
        values = {name: f"{gain[name]:,.0f}" for name in ("m", "n", "k")}
        values |= {"precision": words.name("precision", plan["precision"]), "ratio": f"{gain['gain_ratio']:.2f}"}
        notes.append(words(f"runs.narrow_{key}", **values, hidden="" if pays is None else f"{pays:,.0f}"))
    return tuple(notes)


def _step(plan: Doc) -> object:
    return plan["step_range_s"] or plan["step_s"]["total"]


def _saving_cell(facts: Facts, view: str, metric: str, plan: Doc, words: Words, gpu: str | None) -> Cell:
    if plan["precision"] == facts.asked_on(gpu):
        return Cell(text=words("saving.itself"), tone="quiet")
    name = "same_gpus" if view == "plans" else "same_deadline"
    saving = facts.saving(metric, plan["precision"], view=name, gpu=gpu)
    if saving is None:
        return none_cell(words)
    shown = shown_saving(saving, words)
    tone = saving_tone(saving["low"], saving["high"])
    if shown.at_most:
        key = "saving.up_to_less" if shown.less else "saving.up_to_more"
        return Cell(text=words(key, share=shown.at_most), sort=saving["mid"], tone=tone)
    key = "saving.less" if shown.less else "saving.more"
    if shown.rounds_to_none:
        key = "saving.about" if shown.unsure and not shown.is_none else "saving.none"
    return Cell(text=words(key, share=shown.figure.text), detail=shown.figure.span, sort=saving["mid"], tone=tone)


def _comparing_chart(facts: Facts, metric: str, words: Words, view: str = "plans") -> list[Block]:
    """Return the chart of one metric if it has two bars to compare; the table has a single figure already."""
    bars = sum(bool(plan[metric]) for plan in facts.fitting(view=view))
    return [metric_chart(facts, metric, words, view)] if bars > 1 else []


def views(facts: Facts, words: Words) -> Section | None:
    """Show the comparison in two fair views: on the same GPUs, and by the same deadline."""
    if not facts.plans():
        return None
    blocks: list[Block] = [comparison_table(facts, "plans", words)]
    if facts.fitting():
        blocks += _comparing_chart(facts, DURATION, words)
        blocks.append(runs_table(facts, words))
    if facts.plans(view="same_deadline"):
        blocks.append(comparison_table(facts, "same_deadline", words))
        blocks += _comparing_chart(facts, facts.lead_metric("same_deadline"), words, "same_deadline")
    lead = words.spans(facts.worded("views.lead", "views.lead_images"), **_setting(facts, "plans", words))
    return Section(id="views", title=words("views.title"), lead=lead, blocks=tuple(blocks), group="compare")
