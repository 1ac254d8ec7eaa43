"""Where the time of a step goes and what fills the memory: bars made of parts, with their tables."""

from __future__ import annotations

from planner.plan import MEMORY_ITEMS, STEP_ITEMS
from reports.charts import LETTERS, StackDrawing, StackRow, linear_ticks, percent, scale_top, segments_of, ticks_on
from reports.facts import Doc, Facts, pretty_gpu
from reports.language import Words
from reports.numbers import Rung, magnitude, rung_for
from reports.sections.precisions import axis_labels, described, is_reference
from reports.view import Cell, Column, Row, Section, StackChart, Table


def _items(plans: list[Doc], field: str, order: tuple[str, ...]) -> list[str]:
    """Items that any plan has, in the order of the model, unknown ones after."""
    there = {name for plan in plans for name, size in plan[field].items() if size > 0 and name != "total"}
    return [name for name in order if name in there] + sorted(there - set(order))


def _decimals(plans: list[Doc], field: str, rung: Rung) -> int:
    """Decimals that give the smallest total three digits, so that a column of parts lines up."""
    return max(0, 2 - magnitude(min(plan[field]["total"] for plan in plans) / rung.per))


def _stack(
    facts: Facts, plans: list[Doc], field: str, names: list[str], top: float, rung: Rung, words: Words
) -> tuple[StackRow, ...]:
    group = field.split("_")[0]
    decimals = _decimals(plans, field, rung)

    def shown(size: float) -> str:
        return rung.text.format(words.fixed(size, rung, decimals))

    rows = []
    for plan in plans:
        sizes = [plan[field].get(name, 0.0) for name in names]
        labels = [words("chart.row", label=words.name(group, name), text=shown(size))
                  for name, size in zip(names, sizes, strict=True)]  # fmt: skip
        beyond = plan[field]["total"] > top * 1.0001
        text = shown(plan[field]["total"])
        capacity = plan["memory_capacity_gib"] if group == "memory" else None
        rows.append(
            StackRow(
                label=words.name("precision", plan["precision"]),
                text=words("chart.off_scale", text=text) if beyond else text,
                segments=() if beyond else segments_of(list(zip(range(len(names)), sizes, labels, strict=True)), top),
                limit=percent(100 * capacity / top) if capacity else None,
                strong=plan["precision"] == facts.asked,
                beyond=beyond,
            )
        )
    return tuple(rows)


def _table(
    facts: Facts, plans: list[Doc], field: str, names: list[str], caption: str, rung: Rung, words: Words
) -> Table:
    group = field.split("_")[0]
    decimals = _decimals(plans, field, rung)
    rows = []
    for number, name in enumerate([*names, "total"]):
        cells = []
        for plan in plans:
            size = plan[field].get(name, 0.0)
            share = size / plan[field]["total"] if name != "total" and plan[field]["total"] else None
            text = words.fixed(size, rung, decimals) if size else words("nothing")
            asked = plan["precision"] == facts.asked
            cells.append(Cell(text=text, detail=words.value("percent", share) if share and asked else "", sort=size))
        swatch = LETTERS[number] if name != "total" else ""
        head = Cell(text=words.name(group, name), swatch=swatch, colour=number if swatch else None)
        rows.append(Row(cells=(head, *cells), strong=name == "total"))
    return Table(
        caption=caption,
        columns=(
            Column(head=words("column.item")),
            *(Column(head=words.head(words.name("precision", plan["precision"]), rung), numeric=True) for plan in plans),
        ),
        rows=tuple(rows),
        folded=True,
        sortable=False,
    )


def _chart(title: str, rows: tuple[StackRow, ...], names: list[str], group: str, top: tuple[float, ...], rung: Rung,
           words: Words, limit: str = "") -> StackChart:  # fmt: skip
    legend = tuple((LETTERS[n], n, words.name(group, name)) for n, name in enumerate(names))
    return StackChart(
        title=title,
        description=described(title, [(row.label, row.text) for row in rows], words),
        drawing=StackDrawing(
            rows=rows, ticks=ticks_on(top, axis_labels(top, rung)), legend=legend, limit_text=limit
        ),
    )


def step_time(facts: Facts, words: Words) -> Section | None:
    """Where the time of a step goes."""
    plans = [plan for plan in facts.fitting() if plan["step_s"]]
    if not plans:
        return None
    names = _items(plans, "step_s", STEP_ITEMS)
    rung = rung_for(words.ladder("seconds"), min(plan["step_s"]["total"] for plan in plans))
    top = linear_ticks(
        scale_top(
            [plan["step_s"]["total"] for plan in plans if not is_reference(facts, plan)],
            [plan["step_s"]["total"] for plan in plans if is_reference(facts, plan)],
        )
    )
    rows = _stack(facts, plans, "step_s", names, top[-1], rung, words)
    answer = facts.answer or plans[0]
    parts = {name: size for name, size in answer["step_s"].items() if name != "total"}
    largest = max(parts, key=parts.__getitem__)
    lead = words.spans(
        "time.lead",
        precision=words.name("precision", answer["precision"]),
        step=_step_text(answer, words),
        item=words.name("step", largest),
        share=words.value("percent", parts[largest] / answer["step_s"]["total"]),
    )
    return Section(
        id="time",
        title=words("time.title"),
        lead=lead,
        blocks=(
            _chart(words("chart.step"), rows, names, "step", top, rung, words),
            _table(facts, plans, "step_s", names, words("table.step"), rung, words),
            _rates(facts, plans, words),
        ),
        group="why",
    )


def _step_text(plan: Doc, words: Words) -> str:
    figure = words.figure("seconds", plan["step_range_s"] or plan["step_s"]["total"])
    return figure.full if figure else words("none")


def _rates(facts: Facts, plans: list[Doc], words: Words) -> Table:
    """Throughput, rates and utilisation, with the definitions under the table."""
    columns = (
        ("mfu_full_attention", "percent"),
        ("hfu", "percent"),
        ("goodput_ratio", "percent"),
        ("gpu_power_w", "power_w"),
    )
    there = [(name, kind) for name, kind in columns if any(plan.get(name) is not None for plan in plans)]
    rungs = {name: words.shared(kind, [plan.get(name) for plan in plans]) for name, kind in there}
    rows = []
    for plan in plans:
        cells = []
        for name, kind in there:
            figure = words.figure(kind, plan.get(name), rungs[name])
            cells.append(
                Cell(text=figure.bare, detail=figure.span, sort=figure.value) if figure else Cell(text=words("none"))
            )
        name_cell = Cell(text=words.name("precision", plan["precision"]))
        rows.append(Row(cells=(name_cell, *cells), strong=plan["precision"] == facts.asked))
    heads = [words.head(words.name("metric", n), rungs[n]) for n, _ in there]
    return Table(
        caption=words("table.rates"),
        columns=(Column(head=words("column.precision")), *(Column(head=head, numeric=True) for head in heads)),
        rows=tuple(rows),
        notes=(words("note.mfu"),),
    )


def memory(facts: Facts, words: Words) -> Section | None:
    """What fills the memory of a GPU, against what it has; plans that do not fit are shown where they are itemised."""
    plans = [plan for plan in facts.plans() if plan["memory_gib"]]
    if not plans:
        return None
    names = _items(plans, "memory_gib", MEMORY_ITEMS)
    rung = words.ladder("gib")[0]
    capacity = plans[0]["memory_capacity_gib"]
    top = linear_ticks(max(capacity, *(plan["memory_gib"]["total"] for plan in plans)))
    rows = _stack(facts, plans, "memory_gib", names, top[-1], rung, words)
    answer = facts.answer or plans[0]
    room = answer["memory_capacity_gib"] - answer["memory_gib"]["total"]
    lead = words.spans(
        "memory.lead" if room >= 0 else "memory.lead_short",
        precision=words.name("precision", answer["precision"]),
        used=words.value("gib", answer["memory_gib"]["total"]),
        capacity=words.value("gib", answer["memory_capacity_gib"]),
        gpu=pretty_gpu(answer["gpu"]),
        room=words.value("gib", abs(room)),
    )
    limit = words("chart.capacity", capacity=words.value("gib", capacity))
    return Section(
        id="memory",
        title=words("memory.title"),
        lead=lead,
        blocks=(
            _chart(words("chart.memory"), rows, names, "memory", top, rung, words, limit),
            _table(facts, plans, "memory_gib", names, words("table.memory"), rung, words),
        ),
    )
