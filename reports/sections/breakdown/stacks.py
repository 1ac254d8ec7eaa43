"""Stacked bars for the time of a step, the memory of a GPU and the energy of a run."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from planner.lazy import dataclass
from reports.charts import LETTERS, StackDrawing, StackRow, linear_ticks, percent, scale_top, segments_of, ticks_on
from reports.document.facts import Doc, Facts
from reports.text.described import described
from reports.text.language import Words
from reports.text.numbers import Rung, axis_labels, magnitude
from reports.view import Cell, StackChart

Reader = Callable[[Doc], Doc]
"""Returns the items of a plan by name, with their `total`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StackedItems:
    """Plans and the items to show."""

    plans: tuple[Doc, ...]
    read: Reader
    group: str
    """Group of the items' labels: `step`, `memory`, `energy`."""
    names: tuple[str, ...]
    """Items that at least one plan has, in order."""
    rung: Rung
    decimals: int
    """Number of decimals of every value, so that parts align with their total."""


def stack_of(plans: list[Doc], read: Reader, group: str, order: Sequence[str], rung: Rung) -> StackedItems:
    """Gather the items of plans; unknown items come after the known ones, and the smallest total gets three digits."""
    present = {name for plan in plans for name, size in read(plan).items() if size > 0 and name != "total"}
    names = [name for name in order if name in present] + sorted(present - set(order))
    smallest = min(read(plan)["total"] for plan in plans) / rung.per
    return StackedItems(
        plans=tuple(plans),
        read=read,
        group=group,
        names=tuple(names),
        rung=rung,
        decimals=max(0, 2 - magnitude(smallest)),
    )


def shown(stack: StackedItems, size: float, words: Words) -> str:
    """Format a size with its unit and the decimals of its stack."""
    return stack.rung.text.format(words.fixed(size, stack.rung, stack.decimals))


def size_cell(stack: StackedItems, size: float, words: Words, detail: str = "") -> Cell:
    """Return a size for a column whose header has the unit."""
    text = words.fixed(size, stack.rung, stack.decimals) if size else words("nothing")
    return Cell(text=text, detail=detail, sort=size)


def stack_chart(
    facts: Facts, stack: StackedItems, title: str, words: Words, capacity: float | None = None
) -> StackChart:
    """Return the bars; a reference that dwarfs the others is named instead of drawn."""
    totals = [stack.read(plan)["total"] for plan in stack.plans]
    own = [total for plan, total in zip(stack.plans, totals, strict=True) if not facts.is_reference(plan)]
    others = [total for plan, total in zip(stack.plans, totals, strict=True) if facts.is_reference(plan)]
    ticks = linear_ticks(max(scale_top(own, others), capacity or 0.0))
    rows = tuple(_row(facts, stack, plan, ticks[-1], words, capacity) for plan in stack.plans)
    limit = words("chart.capacity", capacity=words.value("gib", capacity)) if capacity else ""
    return StackChart(
        title=title,
        description=described([(row.label, row.text) for row in rows], words),
        drawing=StackDrawing(
            rows=rows,
            ticks=ticks_on(ticks, axis_labels(ticks, stack.rung)),
            legend=tuple((LETTERS[n], n, words.name(stack.group, name)) for n, name in enumerate(stack.names)),
            limit_text=limit,
        ),
    )


def _row(facts: Facts, stack: StackedItems, plan: Doc, top: float, words: Words, capacity: float | None) -> StackRow:
    items = stack.read(plan)
    sizes = [items.get(name, 0.0) for name in stack.names]
    parts = [
        (n, size, words("chart.row", label=words.name(stack.group, name), text=shown(stack, size, words)))
        for n, (name, size) in enumerate(zip(stack.names, sizes, strict=True))
    ]
    beyond = items["total"] > top * (1 + 1e-6)
    text = shown(stack, items["total"], words)
    return StackRow(
        label=words.name("precision", plan["precision"]),
        text=words("chart.off_scale", text=text) if beyond else text,
        segments=() if beyond else segments_of(parts, top),
        limit=percent(100 * capacity / top) if capacity else None,
        strong=plan["precision"] == facts.asked,
        beyond=beyond,
    )
