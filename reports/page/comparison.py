"""Two answers side by side: the changes from the first to the second, and the inputs that caused them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from planner.csv_table import csv_table
from reports.charts import linear_ticks
from reports.document.facts import CARBON, COST, DURATION, ENERGY, QUANTITY, Doc, Facts, memory_range
from reports.document.redact import left_out, redacted
from reports.page.build import checked, made_by
from reports.page.hero import headline, signed
from reports.sections.breakdown.factors import GRID, factor_of
from reports.sections.comparison.layout import layout_text
from reports.sections.evidence.basis import gap_cell, input_label, input_text
from reports.text.clean import clean
from reports.text.language import Figure, Span, Words, strong, words_for
from reports.text.messages import sentence
from reports.text.names import pretty_gpu
from reports.text.numbers import axis_labels
from reports.view import Block, Cell, Column, Hero, Items, RangeChart, Section, Table, TableRow, View
from reports.view.bars import range_bar, range_chart
from reports.view.cells import figure_cell, none_cell

COMPARISON_SCHEMA = "mpplan.comparison/1"
FIGURES = (COST, DURATION, "gpu_hours", ENERGY, CARBON, "mfu")
SAME = 0.005
"""Relative change up to which two figures count as equal."""
TIMES_FROM = 3.0
"""Ratio from which a change is stated as a ratio instead of in percent."""
NEARLY_NOTHING = 0.01
"""Remaining share of a figure below which its change gets a decimal, since only zero is 100 % less."""
COSTS = {"less": "compare.costs_less", "more": "compare.costs_more", "equal": "compare.costs_equal",
         "times": "compare.costs_times"}  # fmt: skip
TAKES = {"less": "compare.less_than", "more": "compare.more_than", "equal": "compare.equal", "times": "compare.times"}
"""Sentences on the change of the cost, and of the GPU-hours where a cost is not known."""
Pair = tuple[Facts, Facts]


def build_comparison(
    first: Any,
    second: Any,
    *,
    names: tuple[str, str] = ("A", "B"),
    title: str | None = None,
    logo: str | None = None,
    redact: Iterable[str] = (),
    lang: str = "en",
) -> View:
    """Return the view that compares two plans.

    Raises:
        InputFileError: one of the two is not an estimate.
        UsageError: the language or a part to leave out is unknown.
    """
    words, parts = words_for(lang), tuple(redact)
    docs = [redacted(checked(doc, name), parts) for doc, name in ((first, names[0]), (second, names[1]))]
    for doc in docs:
        if "names" in left_out(doc):
            doc["model"]["name"] = words("redact.model")
    pair = (Facts(docs[0]), Facts(docs[1]))
    called = (clean(names[0]) or "A", clean(names[1]) or "B") if "names" not in parts else ("A", "B")
    sections = (
        _figures(pair, called, words), _inputs(pair, called, words), _basis(pair, called, words),
        _sources(pair, called, words),
    )  # fmt: skip
    rows = _data_rows(pair)
    return View(
        words=words,
        title=clean(title) or words("compare.title", first=called[0], second=called[1]),
        subtitle=words("compare.subtitle"),
        hero=_hero(pair, called, words),
        sections=tuple(section for section in sections if section is not None),
        footer=(made_by(docs[1], words),),
        logo=logo,
        data={
            "document": {"schema": COMPARISON_SCHEMA, "names": list(called), "first": docs[0], "second": docs[1],
                         "changes": rows},
            "csv": _csv(rows),
        },
    )  # fmt: skip


def change_of(before: Doc | None, after: Doc | None, metric: str) -> float | None:
    """Return the relative change of the middle, after / before - 1; None if either is missing."""
    if not (before and after and before[metric] and after[metric] and before[metric]["mid"]):
        return None
    return float(after[metric]["mid"]) / float(before[metric]["mid"]) - 1.0


def _answers(pair: Pair) -> tuple[Doc | None, Doc | None]:
    return pair[0].answer, pair[1].answer


def _hero(pair: Pair, called: tuple[str, str], words: Words) -> Hero:
    before, after = _answers(pair)
    metric = COST if before and after and before[COST] and after[COST] else "gpu_hours"
    return Hero(
        headline=_headline(pair, called, metric, words),
        budget=(),
        setting=(*headline(pair[0], words), Span(text=" "), *headline(pair[1], words))
        if not (before and after)
        else (),
        trust=(Cell(text=words("compare.caution")),),
        alerts=_other_work(pair, words),
        tiles=(),
        chart=_chart(pair, called, metric, words),
        table=_answer_table(pair, called, words),
    )


def _headline(pair: Pair, called: tuple[str, str], metric: str, words: Words) -> tuple[Span, ...]:
    before, after = _answers(pair)
    change = change_of(before, after, metric)
    if before is None or after is None or change is None:
        return words.spans("compare.none", first=called[0], second=called[1])
    ratio = max(1.0 + change, 1.0 / (1.0 + change)) if change > -1.0 else 1.0  # for zero, no ratio exists
    quantity, ranges = QUANTITY[metric], [plan[metric] for plan in (before, after)]
    rung = words.shared(quantity, ranges) if ratio < TIMES_FROM and change > -1.0 else None
    figures = [words.figure(quantity, range_, rung) for range_ in ranges]
    assert figures[0] is not None
    assert figures[1] is not None
    ends: dict[str, str | Figure] = {"before": figures[0], "after": figures[1], "first": called[0], "second": called[1]}
    ends |= _bounded(before, after, metric, change, called, words)
    keys = COSTS if metric == COST else TAKES
    if ratio >= TIMES_FROM:
        more, less = (called[1], called[0]) if change > 0 else called
        return words.spans(keys["times"], more=more, less=less, times=strong(f"{float(f'{ratio:.2g}'):,g}"), **ends)
    size = words.figure("percent", abs(change))
    assert size is not None
    key = "less" if change < -SAME else "more" if change > SAME else "equal"
    return words.spans(keys[key], share=size, **ends)


def bound_of(before: Doc, after: Doc, metric: str) -> str:
    """Return how the true change relates to that of the middles: `at_least`, `at_most`, `perhaps`; empty if equal.

    A lower bound understates the true figure. If the second figure is a lower bound, the change is at least as high as
    stated; if the first is, at most; if both are, either is possible.
    """
    first, second = (bool(plan[metric] and plan[metric].get("at_least")) for plan in (before, after))
    if first and second:
        return "perhaps"
    return "at_most" if first else "at_least" if second else ""


def _bounded(
    before: Doc, after: Doc, metric: str, change: float, called: tuple[str, str], words: Words
) -> dict[str, str]:
    """Return the words on lower bounds for a headline: the direction of the bound, and whose figure is incomplete."""
    bound = bound_of(before, after, metric)
    if not bound:
        return {"bound": "", "missing": ""}
    if bound == "perhaps":
        return {"bound": words("compare.perhaps"), "missing": words("compare.missing_of_both")}
    name = called[1] if bound == "at_least" else called[0]
    most = (bound == "at_most") == (change > SAME)  # a saving is the change with the opposite sign
    if abs(change) <= SAME:
        most = bound == "at_most"
    return {
        "bound": words("compare.at_most" if most else "compare.at_least"),
        "missing": words("compare.missing_of", name=name),
    }


def _other_work(pair: Pair, words: Words) -> tuple[str, ...]:
    """Warn if the two plans train different models, by different methods or for different lengths."""
    works = [
        (facts.model_name, facts.doc["model"]["params_total"], facts.given("method"), facts.amount) for facts in pair
    ]
    if works[0] == works[1]:
        return ()
    first, second = (words("compare.work", model=facts.model_name, on_tokens=_length(facts, words)) for facts in pair)
    return (words("compare.other_work", first=first, second=second),)


def _length(facts: Facts, words: Words) -> str:
    if not facts.amount:
        return ""
    return words("on_tokens", tokens=words.value(facts.amount_quantity, facts.amount))


def _labels(pair: Pair, called: tuple[str, str], words: Words) -> list[str]:
    return [
        words("compare.label", name=name, precision=words.name("precision", facts.asked), gpus=f"{plan['gpus']:,}",
              gpu=pretty_gpu(plan["gpu"])) if (plan := facts.answer) else name
        for facts, name in zip(pair, called, strict=True)
    ]  # fmt: skip


def _chart(pair: Pair, called: tuple[str, str], metric: str, words: Words) -> RangeChart | None:
    plans = [facts.answer for facts in pair]
    if any(plan is None or not plan[metric] for plan in plans):
        return None
    shown = [plan for plan in plans if plan is not None]
    rung = words.shared(QUANTITY[metric], [plan[metric] for plan in shown])
    top = linear_ticks(max(plan[metric]["high"] for plan in shown))
    bars = []
    for number, (plan, label) in enumerate(zip(shown, _labels(pair, called, words), strict=True)):
        figure = words.figure(QUANTITY[metric], plan[metric], rung)
        if figure is not None:
            bars.append(range_bar(label, figure, plan[metric], strong=number == 1))
    title = words("compare.chart", metric=words.name("metric", metric))
    return range_chart(title, bars, top, axis_labels(top, rung), words)


def _change_cell(change: float | None, words: Words, *, less_is_better: bool = True, bound: str = "") -> Cell:
    nearly_all = change is not None and 1.0 + change < NEARLY_NOTHING
    figure = words.figure("change", change, decimals=1 if nearly_all else None)
    if figure is None or change is None:
        return none_cell(words)
    good = change < 0 if less_is_better else change > 0
    sure = bound == "" or (bound == "at_least" and change > 0) or (bound == "at_most" and change < 0)
    tone = "" if abs(change) < SAME or not sure else "good" if good else "bad"
    around = {"at_least": words("at_least"), "at_most": words("at_most")}.get(bound, "{}")
    return Cell(text=around.format(signed(figure, words)), sort=change, tone=tone)


def _rows_for(before: Doc | None, after: Doc | None, words: Words) -> list[TableRow]:
    rows = []
    for metric in FIGURES:
        values = [plan[metric] if plan and plan["fits"] else None for plan in (before, after)]
        if not any(values):
            continue
        rung = words.shared(QUANTITY[metric], values)
        figures: list[Figure | None] = [words.figure(QUANTITY[metric], value, rung) for value in values]
        change = change_of(before, after, metric)
        head = Cell(text=words.head(words.name("metric", metric), rung))
        bound = bound_of(before, after, metric) if before and after and change is not None else ""
        cell = _change_cell(change, words, less_is_better=metric != "mfu", bound=bound)
        rows.append(TableRow(cells=(head, *(figure_cell(figure, words) for figure in figures), cell)))
    return rows


def _columns(called: tuple[str, str], words: Words) -> tuple[Column, ...]:
    return (
        Column(head=words("column.figure")),
        *(Column(head=name, numeric=True) for name in called),
        Column(head=words("compare.change"), numeric=True),
    )


def _answer_table(pair: Pair, called: tuple[str, str], words: Words) -> Table:
    rows = _rows_for(*_answers(pair), words)
    first, second = (words.name("precision", facts.asked) for facts in pair)
    caption = first if first == second else words("compare.asked", first=first, second=second)
    return Table(caption=caption, columns=_columns(called, words), rows=tuple(rows), wide=False, sortable=False)


def _figures(pair: Pair, called: tuple[str, str], words: Words) -> Section:
    """Return the same comparison for the second answer's other precisions, and the way the two answers run."""
    blocks: list[Block] = []
    for plan in pair[1].plans():
        before = pair[0].plan(plan["precision"])
        if plan["precision"] == pair[0].asked == pair[1].asked:
            continue
        rows = _rows_for(before, plan, words)
        if rows:
            caption = words.name("precision", plan["precision"])
            blocks.append(Table(caption=caption, columns=_columns(called, words), rows=tuple(rows), sortable=False))
    blocks.append(_runs(pair, called, words))
    lead = words.spans("compare.figures_lead", metric=words.name("metric", pair[1].lead_metric()))
    return Section(id="views", title=words("compare.figures"), lead=lead, blocks=tuple(blocks), group="compare")


def _runs(pair: Pair, called: tuple[str, str], words: Words) -> Table:
    rows = []
    for facts, name in zip(pair, called, strict=True):
        plan = facts.answer
        cells = [words("none")] * 4
        if plan is not None:
            layout = layout_text(plan["layout"]) if plan["layout"] else words("none")
            memory = words.figure("gib", memory_range(plan))
            assert memory is not None  # a plan that fits has a memory
            gpus = words("gpus.row", gpus=f"{plan['gpus']:,}", gpu=pretty_gpu(plan["gpu"]))
            cells = [words.name("precision", plan["precision"]), gpus, layout, memory.full]
        rows.append(TableRow(cells=(Cell(text=name), *(Cell(text=cell) for cell in cells))))
    heads = ("plan", "precision", "gpus", "layout")
    return Table(
        caption=words("compare.runs"),
        columns=(*(Column(head=words(f"column.{head}")) for head in heads), Column(head=words("runs.memory"))),
        rows=tuple(rows),
    )


def _inputs(pair: Pair, called: tuple[str, str], words: Words) -> Section | None:
    """Return the inputs that differ, and the number of inputs that are equal."""
    asked = [facts.doc["question"] for facts in pair]
    names = list(dict.fromkeys([*asked[0], *asked[1]]))
    rows: dict[str, TableRow] = {}
    for name in names:
        texts = [
            input_text(name, entries[name], words)
            if name in entries and entries[name]["value"] is not None
            else words("none")
            for entries in asked
        ]
        if texts[0] != texts[1]:
            cells = (Cell(text=text) for text in (input_label(name, words), *texts))
            rows[name] = TableRow(cells=tuple(cells))
    models = [facts.model_name for facts in pair]
    if models[0] != models[1] and "model" not in rows:
        by_name = TableRow(cells=(Cell(text=words.name("input", "model")), *(Cell(text=text) for text in models)))
        rows = {"model": by_name, **rows}
    lead = words.spans("compare.inputs_lead", n=f"{len(rows):,}", same=f"{len(names) - len(rows):,}")
    columns = (Column(head=words("column.input")), *(Column(head=name) for name in called))
    table = Table(caption=words("compare.differ"), columns=columns, rows=tuple(rows.values()))
    emissions = _emissions(pair, called, words)
    blocks: tuple[Block, ...] = (*((table,) if rows else ()), *((emissions,) if emissions else ()))
    return Section(id="inputs", title=words("compare.inputs"), lead=lead, blocks=blocks, group="why")


def _emissions(pair: Pair, called: tuple[str, str], words: Words) -> Items | None:
    """Return what the two grid factors count, of where and when, since carbon of different scopes is not comparable.

    None if the factors are the same, or one of them is not known.
    """
    texts = [clean(source["what"]) for facts in pair if (source := factor_of(facts, GRID)) is not None]
    if len(set(texts)) < len(pair):
        return None
    told = (words("list.told", name=name, text=text) for name, text in zip(called, texts, strict=True))
    cells = tuple(Cell(text=text, foreign=words.lang != "en") for text in told)
    return Items(title=words("compare.emissions"), items=cells)


def _basis(pair: Pair, called: tuple[str, str], words: Words) -> Section | None:
    """Return the assumptions and gaps that only one of the two answers has."""
    blocks: list[Block] = []
    for own, counterpart, name in _both_ways(pair, called):
        for key, title in (("assumptions", "compare.only_assumptions"), ("gaps", "compare.only_gaps")):
            theirs = {_identity(row) for row in counterpart.doc[key]}
            items = [_basis_cell(row, words) for row in own.doc[key] if _identity(row) not in theirs]
            if items:
                blocks.append(Items(title=words(title, name=name), items=tuple(items)))
    if not blocks:
        return None
    lead = words.spans("compare.basis_lead")
    return Section(id="assumptions", title=words("compare.basis"), lead=lead, blocks=tuple(blocks), group="basis")


def _sources(pair: Pair, called: tuple[str, str], words: Words) -> Section | None:
    """Return the sources that only one of the two answers has."""
    blocks: list[Block] = []
    for own, counterpart, name in _both_ways(pair, called):
        known = {source["id"] for source in counterpart.doc["evidence"]}
        only = [source for source in own.doc["evidence"] if source["id"] not in known]
        if only:
            cells = tuple(Cell(text=source["what"], detail=source["id"], foreign=words.lang != "en") for source in only)
            blocks.append(Items(title=words("compare.only_sources", name=name), items=cells))
    if not blocks:
        return None
    lead = words.spans("compare.sources_lead")
    return Section(id="sources", title=words("compare.sources"), lead=lead, blocks=tuple(blocks), group="basis")


def _both_ways(pair: Pair, called: tuple[str, str]) -> tuple[tuple[Facts, Facts, str], ...]:
    """Return each of the two answers with its counterpart and its name."""
    return (pair[0], pair[1], called[0]), (pair[1], pair[0], called[1])


def _identity(row: Doc) -> str:
    """Return the text that identifies an assumption or a gap."""
    return str(row["text"]) if "text" in row else f"{row['what']}: {row['why']}"


def _basis_cell(row: Doc, words: Words) -> Cell:
    if "text" not in row:
        return gap_cell(row, words)
    worded = sentence(row, "text", words.lang)
    return Cell(text=worded.text, foreign=worded.foreign)


def _data_rows(pair: Pair) -> list[Doc]:
    """Return every figure of every precision that either answer has, as data."""
    names = list(dict.fromkeys(plan["precision"] for facts in pair for plan in facts.plans()))
    rows = []
    for precision in names:
        before, after = (facts.plan(precision) for facts in pair)
        for metric in FIGURES:
            ends = [plan[metric] if plan and plan["fits"] else None for plan in (before, after)]
            if not any(ends):
                continue
            row: Doc = {"precision": precision, "metric": metric}
            for name, value in zip(("first", "second"), ends, strict=True):
                row |= {f"{name}_{end}": value[end] if value else None for end in ("low", "mid", "high")}
                row[f"{name}_at_least"] = bool(value.get("at_least")) if value else None
            both_fit = before is not None and after is not None and before["fits"] and after["fits"]
            row["change_ratio"] = change_of(before, after, metric) if both_fit else None
            rows.append(row)
    return rows


def _csv(rows: list[Doc]) -> str:
    return csv_table(list(rows[0]) if rows else ["precision", "metric"], [list(row.values()) for row in rows])
