"""Where each dollar, each kilowatt-hour and each kilogram goes."""

from __future__ import annotations

from reports.document.facts import CARBON, ENERGY, MARKET, Doc, Facts
from reports.sections.breakdown.stacks import StackedItems, size_cell, stack_chart, stack_of
from reports.sections.comparison.precisions import figure_cell
from reports.text.language import Span, Words
from reports.text.messages import sentence
from reports.view import Block, Cell, Column, Section, Table, TableRow


def money(facts: Facts, words: Words) -> Section | None:
    """The cost tree of the requested precision, the energy of every precision, power and carbon."""
    answer = facts.answer
    plans = facts.fitting()
    if answer is None:
        return None
    blocks: list[Block] = []
    if answer["cost_lines"]:
        blocks.append(_cost_table(answer, words))
    with_energy = [plan for plan in plans if plan["energy_items_mwh"] and plan[ENERGY]]
    if with_energy:
        stack = _energy_stack(with_energy, words)
        blocks += [stack_chart(facts, stack, words("chart.energy"), words), _energy_table(facts, stack, words)]
    if not blocks:
        return None
    return Section(id="money", title=words("money.title"), lead=_lead(answer, words), blocks=tuple(blocks))


def _lead(answer: Doc, words: Words) -> tuple[Span, ...]:
    energy = words.figure("energy", answer[ENERGY])
    carbon = words.figure("carbon", answer[CARBON])
    parts = words.spans("money.lead", energy=energy) if energy else ()
    if answer["gpu_power_w"] and answer["peak_power_mw"]:
        power = words.figure("power_w", answer["gpu_power_w"])
        parts += words.spans("money.power", power=power or "", peak=words.value("power_mw", answer["peak_power_mw"]))
    if carbon:
        parts += words.spans("money.carbon", carbon=carbon)
    if answer["carbon_market_tco2e"] is not None:
        parts += words.spans("money.market", carbon=words.value("carbon", answer["carbon_market_tco2e"]))
    return parts


def _walk(lines: list[Doc], depth: int = 0) -> list[tuple[int, Doc]]:
    return [pair for line in lines for pair in [(depth, line), *_walk(line.get("children") or [], depth + 1)]]


def _cost_table(answer: Doc, words: Words) -> Table:
    lines = _walk(answer["cost_lines"])
    rung = words.shared("money", [line["usd"] for depth, line in lines if not depth] + [answer[MARKET]])
    rows = []
    for depth, line in lines:
        figure = words.figure("money", line["usd"], rung)
        price = words.figure("unit_price", line["unit_price_usd"])
        quantity = (
            words("cost.quantity", n=words.value("plain", line["quantity"]), unit=words.name("unit", line["unit"]))
            if line["quantity"] is not None
            else ""
        )
        label = sentence(line, "label", words.lang)
        rows.append(
            TableRow(
                cells=(
                    Cell(text=words("tree.indent") * depth + label.text, foreign=label.foreign),
                    Cell(text=quantity, sort=line["quantity"]),
                    Cell(text=price.text if price else "", detail=price.span if price else ""),
                    Cell(text=figure.bare, detail=figure.span, sort=figure.value)
                    if figure
                    else Cell(text=words("none")),
                )
            )
        )
    total = words.figure("money", answer[MARKET], rung)
    last = Cell(text=total.bare, detail=total.span, sort=total.value) if total else Cell(text=words("none"))
    rows.append(TableRow(cells=(Cell(text=words("cost.total")), Cell(text=""), Cell(text=""), last), strong=True))
    return Table(
        caption=words("table.cost", precision=words.name("precision", answer["precision"])),
        columns=(
            Column(head=words("column.line")),
            Column(head=words("column.quantity"), numeric=True),
            Column(head=words("column.unit_price"), numeric=True),
            Column(head=words.head(words.name("metric", MARKET), rung), numeric=True),
        ),
        rows=tuple(rows),
        sortable=False,
    )


ENERGY_ITEMS = ("gpu", "host", "network", "pue_overhead")
"""Items of `energy_items_mwh`."""


def _energy_items(plan: Doc) -> Doc:
    items = {name: size for name, size in plan["energy_items_mwh"].items() if name != "total"}
    return items | {"total": sum(items.values())}


def _energy_stack(plans: list[Doc], words: Words) -> StackedItems:
    rung = words.shared("energy", [plan[ENERGY] for plan in plans])
    return stack_of(plans, _energy_items, "energy", ENERGY_ITEMS, rung)


def _energy_table(facts: Facts, stack: StackedItems, words: Words) -> Table:
    carbon = words.shared("carbon", [plan[CARBON] for plan in stack.plans])
    rows = []
    for plan in stack.plans:
        items = stack.read(plan)
        cells = [size_cell(stack, items.get(name, 0.0), words) for name in stack.names]
        cells.append(figure_cell(words.figure("energy", plan[ENERGY], stack.rung), words))
        cells.append(figure_cell(words.figure("carbon", plan[CARBON], carbon), words))
        head = Cell(text=words.name("precision", plan["precision"]))
        rows.append(TableRow(cells=(head, *cells), strong=plan["precision"] == facts.asked))
    heads = [words.head(words.name("energy", name), stack.rung) for name in stack.names]
    heads.append(words.head(words.name("metric", ENERGY), stack.rung))
    heads.append(words.head(words.name("metric", CARBON), carbon))
    return Table(
        caption=words("table.energy"),
        columns=(Column(head=words("column.precision")), *(Column(head=head, numeric=True) for head in heads)),
        rows=tuple(rows),
    )
