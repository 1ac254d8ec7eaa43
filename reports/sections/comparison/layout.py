"""The layout of the model over the GPUs for each precision, and the layouts that were not chosen."""

from __future__ import annotations

from reports.document.facts import Doc, Facts, memory_items
from reports.document.text_facts import faster_but_less_simple, faster_with_other_batch
from reports.text.language import Span, Words
from reports.text.messages import sentence
from reports.text.numbers import Rung, decimals_for, grouped, rung_for
from reports.view import Block, Cell, Column, Section, Table, TableRow

AXES = ("tp", "pp", "vp", "cp", "ep", "dp", "zero", "micro_batch", "grad_accum", "act_ckpt")
"""Keys of a layout, in the order of the table."""
ALWAYS = ("tp", "pp", "dp", "zero", "micro_batch", "grad_accum", "act_ckpt")
"""Keys that are always shown; the others only if a layout has a value above 1."""
MOST_LOST = 8


def layout(facts: Facts, words: Words) -> Section | None:
    """Show the chosen layouts, and the runners-up of the requested precision."""
    plans = [plan for plan in facts.fitting() if plan["layout"]]
    if not plans:
        return None
    answer = facts.answer or plans[0]
    blocks: list[Block] = [_chosen(facts, plans, words)]
    lost = answer["lost_layouts"][:MOST_LOST]
    if lost:
        blocks.append(_lost(answer, lost, words))
    return Section(id="layout", title=words("layout.title"), lead=_lead(answer, words), blocks=tuple(blocks))


def _lead(answer: Doc, words: Words) -> tuple[Span, ...]:
    """Describe the layout and its rank among those evaluated: the best, or the simplest of the nearly best."""
    values = {
        "precision": words.name("precision", answer["precision"]),
        "layout": layout_text(answer["layout"]),
        "count": f"{answer['layouts_evaluated']:,}",
    }
    simpler, keeping = faster_but_less_simple(answer), faster_with_other_batch(answer)
    best = simpler or keeping
    if best is None:
        return words.spans("layout.lead", **values)
    fastest, faster_ratio = best
    best_layout, other = text_apart_from(fastest["layout"], answer["layout"], words), grouped(100.0 * faster_ratio, 1)
    if float(other) == 0.0 and simpler is not None:
        return words.spans("layout.lead_as_fast", **values, best=best_layout)
    faster = words("percent").format(other)
    key = "layout.lead_batch" if simpler is None else "layout.lead_simplest"
    return words.spans(key, **values, best=best_layout, faster=faster)


def text_apart_from(layout: Doc, other: Doc, words: Words) -> str:
    """Describe a layout briefly, with its batch and checkpointing if they differ from another's."""
    parts = [layout_text(layout)]
    batch, its_batch = _batch(layout), _batch(other)
    if batch != its_batch:
        parts.append(words("layout.with_batch", batch=f"{batch:,}", other=f"{its_batch:,}"))
    if layout["act_ckpt"] != other["act_ckpt"]:
        parts.append(words("layout.with_ckpt", ckpt=words.name("ckpt", layout["act_ckpt"])))
    return " ".join(parts)


def _batch(layout: Doc) -> int:
    """Return the sequences or images per step."""
    return int(layout["dp"] * layout["micro_batch"] * layout["grad_accum"])


def global_batch(plan: Doc) -> int | None:
    """Return the sequences or images per step of a plan; None if it has no layout."""
    chosen = plan.get("layout")
    return _batch(chosen) if chosen else None


def layout_text(chosen: Doc) -> str:
    """Describe a layout as `TP8 PP4 DP16 ZeRO-1 MB1×64` (micro-batch × accumulation), without degrees of 1."""
    axes = [f"{axis.upper()}{chosen[axis]}" for axis in ("tp", "pp", "vp", "cp", "ep", "dp") if chosen[axis] > 1]
    if chosen["zero"]:
        axes.append(f"ZeRO-{chosen['zero']}")
    return " ".join([*axes, f"MB{chosen['micro_batch']}×{chosen['grad_accum']}"])


def _axes(layouts: list[Doc]) -> list[str]:
    return [axis for axis in AXES if axis in ALWAYS or any(layout[axis] > 1 for layout in layouts)]


def _cells(layout: Doc, axes: list[str], words: Words) -> list[Cell]:
    return [
        Cell(text=words.name("ckpt", layout[axis]))
        if axis == "act_ckpt"
        else Cell(text=f"{layout[axis]:,}", sort=layout[axis])
        for axis in axes
    ]


def _columns(axes: list[str], words: Words) -> list[Column]:
    return [Column(head=words.name("axis", axis), numeric=axis != "act_ckpt") for axis in axes]


def _chosen(facts: Facts, plans: list[Doc], words: Words) -> Table:
    axes = _axes([plan["layout"] for plan in plans])
    rows = tuple(
        TableRow(
            cells=(
                Cell(text=words.name("precision", plan["precision"])),
                Cell(text=plan["policy"], tone="code"),
                *_cells(plan["layout"], axes, words),
            ),
            strong=plan["precision"] == facts.asked,
        )
        for plan in plans
    )
    return Table(
        caption=words("table.layout"),
        columns=(
            Column(head=words("column.precision")),
            Column(head=words("column.policy")),
            *_columns(axes, words),
        ),
        rows=rows,
        notes=(words(facts.worded("note.layout", "note.layout_images")),),
    )


def _with_same_decimals(values: list[float], rung: Rung) -> list[Cell]:
    """Return the cells of a column, all with the decimals of its first number."""
    first = values[0] / rung.per
    decimals = max(0, min(decimals_for(first, first, first), rung.decimals))
    return [Cell(text=grouped(value / rung.per, decimals), sort=value) for value in values]


def _lost(answer: Doc, lost: list[Doc], words: Words) -> Table:
    axes = _axes([plan["layout"] for plan in [*lost, answer]])
    seconds = rung_for(words.ladder("seconds"), answer["step_s"]["total"])
    gib = words.ladder("gib")[0]
    entries = [(answer["layout"], answer["step_s"]["total"], memory_items(answer)["total"], words("layout.chosen"))]
    entries += [
        (row["layout"], row["step_s"], row["memory_gib"], sentence(row, "why", words.lang).text) for row in lost
    ]
    steps = _with_same_decimals([step for _, step, _, _ in entries], seconds)
    memory = _with_same_decimals([used for _, _, used, _ in entries], gib)
    rows = tuple(
        TableRow(
            cells=(Cell(text=why), *_cells(chosen, axes, words), steps[number], memory[number]),
            strong=number == 0,
        )
        for number, (chosen, _, _, why) in enumerate(entries)
    )
    return Table(
        caption=words("table.lost", precision=words.name("precision", answer["precision"])),
        columns=(
            Column(head=words("column.verdict")),
            *_columns(axes, words),
            Column(head=words.head(words.name("metric", "step_s"), seconds), numeric=True),
            Column(head=words.head(words.name("metric", "memory_gib"), gib), numeric=True),
        ),
        rows=rows,
        notes=(words("note.batches"),) if len({_batch(layout) for layout, *_ in entries}) > 1 else (),
        folded=True,
    )
