"""Where each dollar, each kilowatt-hour and each kilogram goes."""

from __future__ import annotations

from reports.charts import LETTERS, StackDrawing, StackRow, linear_ticks, scale_top, segments_of, ticks_on
from reports.facts import CARBON, ENERGY, MARKET, Doc, Facts
from reports.language import Span, Words
from reports.sections.precisions import axis_labels, described, is_reference
from reports.view import Block, Cell, Column, Row, Section, StackChart, Table


def money(facts: Facts, words: Words) -> Section | None:
    """The cost tree of the asked precision, the energy of every one, power and carbon."""
    answer = facts.answer
    plans = facts.fitting()
    if answer is None:
        return None
    blocks: list[Block] = []
    if answer["cost_lines"]:
        blocks.append(_cost_table(answer, words))
    with_energy = [plan for plan in plans if plan["energy_items_mwh"] and plan[ENERGY]]
    if with_energy:
        blocks += [_energy_chart(facts, with_energy, words), _energy_table(facts, with_energy, words)]
    if not blocks:
        return None
    return Section(id="money", title=words("money.title"), lead=_lead(answer, words), blocks=tuple(blocks))


def _lead(answer: Doc, words: Words) -> tuple[Span, ...]:
    energy = words.figure("energy", answer[ENERGY])
    carbon = words.figure("carbon", answer[CARBON])
    parts = words.spans("money.lead", energy=energy) if energy else ()
    if answer["gpu_power_w"] and answer["peak_power_mw"]:
        power = words.figure("power_w", answer["gpu_power_w"])
        parts += words.spans("money.power", power=power, peak=words.value("power_mw", answer["peak_power_mw"]))
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
            words("cost.quantity", n=words.value("plain", line["quantity"]), unit=words.phrase(line["unit"]))
            if line["quantity"] is not None
            else ""
        )
        label = words.name("cost", line["id"]) if words.has(f"cost.{line['id']}") else words.phrase(line["label"])
        rows.append(
            Row(
                cells=(
                    Cell(text=words("tree.indent") * depth + label),
                    Cell(text=quantity, sort=line["quantity"]),
                    Cell(text=price.text if price else "", detail=price.span if price else ""),
                    Cell(text=figure.bare, detail=figure.span, sort=figure.value) if figure else Cell(text=words("none")),
                )
            )
        )
    total = words.figure("money", answer[MARKET], rung)
    last = Cell(text=total.bare, detail=total.span, sort=total.value) if total else Cell(text=words("none"))
    rows.append(Row(cells=(Cell(text=words("cost.total")), Cell(text=""), Cell(text=""), last), strong=True))
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


def _energy_names(plans: list[Doc]) -> list[str]:
    order = ("gpu", "host", "network", "pue_overhead")
    there = {name for plan in plans for name, size in plan["energy_items_mwh"].items() if size > 0}
    there.discard("total")
    return [name for name in order if name in there] + sorted(there - set(order))


def _energy_chart(facts: Facts, plans: list[Doc], words: Words) -> StackChart:
    names = _energy_names(plans)
    totals = [sum(size for name, size in plan["energy_items_mwh"].items() if name != "total") for plan in plans]
    rung = words.shared("energy", totals)
    references = [is_reference(facts, plan) for plan in plans]
    top = linear_ticks(
        scale_top(
            [total for total, other in zip(totals, references, strict=True) if not other],
            [total for total, other in zip(totals, references, strict=True) if other],
        )
    )
    rows = []
    for plan, total in zip(plans, totals, strict=True):
        beyond = total > top[-1] * 1.0001
        text = words.number(total, total, total, rung).text
        parts = [
            (n, size, f"{words.name('energy', name)}: {words.number(size, size, size, rung).text}")
            for n, name in enumerate(names)
            for size in [plan["energy_items_mwh"].get(name, 0.0)]
        ]
        rows.append(
            StackRow(
                label=words.name("precision", plan["precision"]),
                text=words("chart.off_scale", text=text) if beyond else text,
                segments=() if beyond else segments_of(parts, top[-1]),
                beyond=beyond,
                strong=plan["precision"] == facts.asked,
            )
        )
    title = words("chart.energy")
    return StackChart(
        title=title,
        description=described(title, [(row.label, row.text) for row in rows], words),
        drawing=StackDrawing(
            rows=tuple(rows),
            ticks=ticks_on(top, axis_labels(top, rung)),
            legend=tuple((LETTERS[n], n, words.name("energy", name)) for n, name in enumerate(names)),
        ),
    )


def _energy_table(facts: Facts, plans: list[Doc], words: Words) -> Table:
    names = _energy_names(plans)
    rung = words.shared("energy", [plan[ENERGY] for plan in plans])
    carbon = words.shared("carbon", [plan[CARBON] for plan in plans])
    rows = []
    for plan in plans:
        sizes = [plan["energy_items_mwh"].get(name, 0.0) for name in names]
        cells = [Cell(text=words.number(size, size, size, rung).bare, sort=size) for size in sizes]
        for figure in (words.figure("energy", plan[ENERGY], rung), words.figure("carbon", plan[CARBON], carbon)):
            cells.append(
                Cell(text=figure.bare, detail=figure.span, sort=figure.value) if figure else Cell(text=words("none"))
            )
        head = Cell(text=words.name("precision", plan["precision"]))
        rows.append(Row(cells=(head, *cells), strong=plan["precision"] == facts.asked))
    heads = [words.head(words.name("energy", name), rung) for name in names]
    heads.append(words.head(words.name("metric", ENERGY), rung))
    heads.append(words.head(words.name("metric", CARBON), carbon))
    return Table(
        caption=words("table.energy"),
        columns=(Column(head=words("column.precision")), *(Column(head=head, numeric=True) for head in heads)),
        rows=tuple(rows),
    )
