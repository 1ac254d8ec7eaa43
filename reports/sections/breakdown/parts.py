"""The parts of a step's time and of the memory, each as a chart with its table."""

from __future__ import annotations

from planner.answer.plan import MEMORY_ITEMS, STEP_ITEMS
from reports.charts import LETTERS
from reports.document.facts import Doc, Facts, memory_items, memory_range
from reports.sections.breakdown.stacks import StackedItems, size_cell, stack_chart, stack_of
from reports.text.language import Words
from reports.text.names import pretty_gpu
from reports.text.numbers import rung_for
from reports.view import Cell, Column, Section, Table, TableRow
from reports.view.cells import figure_cell

LEAST_SHARE = 0.001
"""A share that rounds to less is shown as less than this."""


def _share(ratio: float, words: Words) -> str:
    """Format the share of an item that is not zero."""
    least = words.value("percent", LEAST_SHARE)
    return words.value("percent", ratio) if ratio >= LEAST_SHARE / 2 else words("less_than").format(least)


def item_table(facts: Facts, stack: StackedItems, caption: str, words: Words) -> Table:
    """Return a row per item and a column per precision, with shares for the requested precision."""
    rows = []
    for number, name in enumerate([*stack.names, "total"]):
        cells = []
        for plan in stack.plans:
            items = stack.read(plan)
            size = items.get(name, 0.0)
            show_share = plan["precision"] == facts.asked and name != "total" and size > 0
            cells.append(size_cell(stack, size, words, _share(size / items["total"], words) if show_share else ""))
        swatch = LETTERS[number] if name != "total" else ""
        head = Cell(text=words.name(stack.group, name), swatch=swatch, colour=number if swatch else None)
        rows.append(TableRow(cells=(head, *cells), strong=name == "total"))
    heads = [words.head(words.name("precision", plan["precision"]), stack.rung) for plan in stack.plans]
    return Table(
        caption=caption,
        columns=(Column(head=words("column.item")), *(Column(head=head, numeric=True) for head in heads)),
        rows=tuple(rows),
        folded=True,
        sortable=False,
    )


def step_time(facts: Facts, words: Words) -> Section | None:
    """Show the parts of a step's time."""
    plans = [plan for plan in facts.fitting() if plan["step_s"]]
    if not plans:
        return None
    rung = rung_for(words.ladder("seconds"), min(plan["step_s"]["total"] for plan in plans))
    stack = stack_of(plans, lambda plan: plan["step_s"], "step", STEP_ITEMS, rung)
    answer = facts.answer or plans[0]
    parts = {name: size for name, size in answer["step_s"].items() if name != "total"}
    largest = max(parts, key=parts.__getitem__)
    step = words.figure("seconds", answer["step_range_s"] or answer["step_s"]["total"])
    lead = words.spans(
        "time.lead",
        precision=words.name("precision", answer["precision"]),
        step=step.full if step else words("none"),
        item=words.name("step", largest),
        share=words.value("percent", parts[largest] / answer["step_s"]["total"]),
    )
    return Section(
        id="time",
        title=words("time.title"),
        lead=lead,
        blocks=(
            stack_chart(facts, stack, words("chart.step"), words),
            item_table(facts, stack, words("table.step"), words),
            _rates(facts, plans, words),
        ),
        group="why",
    )


RATES = (
    ("mfu_full_attention", "percent"),
    ("hfu", "percent"),
    ("goodput_ratio", "percent"),
    ("gpu_power_w", "power_w"),
)
"""Further figures of a plan, with the ladders of their units."""


def _rates(facts: Facts, plans: list[Doc], words: Words) -> Table:
    """Return utilisation, goodput and power, with the definitions under the table."""
    present = [(name, kind) for name, kind in RATES if any(plan.get(name) is not None for plan in plans)]
    rungs = {name: words.shared(kind, [plan.get(name) for plan in plans]) for name, kind in present}
    rows = []
    for plan in plans:
        cells = [figure_cell(words.figure(kind, plan.get(name), rungs[name]), words) for name, kind in present]
        name_cell = Cell(text=words.name("precision", plan["precision"]))
        rows.append(TableRow(cells=(name_cell, *cells), strong=plan["precision"] == facts.asked))
    heads = [words.head(words.name("metric", name), rungs[name]) for name, _ in present]
    return Table(
        caption=words("table.rates"),
        columns=(Column(head=words("column.precision")), *(Column(head=head, numeric=True) for head in heads)),
        rows=tuple(rows),
        notes=(words(facts.worded("note.mfu", "note.mfu_images")),),
    )


def memory(facts: Facts, words: Words) -> Section | None:
    """Show the parts of a GPU's memory and its capacity, including plans that do not fit if they are itemised."""
    plans = [plan for plan in facts.plans() if plan["memory_gib"]]
    if not plans:
        return None
    stack = stack_of(plans, memory_items, "memory", MEMORY_ITEMS, words.ladder("gib")[0])
    answer = facts.answer or plans[0]
    capacity = answer["memory_capacity_gib"]
    room = capacity - memory_items(answer)["total"]
    used = words.figure("gib", memory_range(answer))
    assert used is not None  # the plan is itemised
    lead = words.spans(
        "memory.lead" if room >= 0 else "memory.lead_short",
        precision=words.name("precision", answer["precision"]),
        used=used,
        capacity=words.value("gib", capacity),
        gpu=pretty_gpu(answer["gpu"]),
        room=words.value("gib", abs(room)),
    )
    if answer["memory_risk"] is not None:
        lead += words.spans("memory.risk", risk=words.chance(answer["memory_risk"]))
    return Section(
        id="memory",
        title=words("memory.title"),
        lead=lead,
        blocks=(
            stack_chart(facts, stack, words("chart.memory"), words, capacity),
            item_table(facts, stack, words("table.memory"), words),
        ),
    )
