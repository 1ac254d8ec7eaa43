"""Where each dollar, each kilowatt-hour and each kilogram of carbon goes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from decimal import ROUND_HALF_UP, Decimal

from planner.costs.rounding import MOST_DECIMALS, QUANTITY_DECIMALS, apportioned, line_usd
from planner.units import MEGA
from reports.document.facts import CARBON, COST, ENERGY, Doc, Facts
from reports.sections.breakdown.factors import factors
from reports.sections.breakdown.minimum import unused
from reports.sections.breakdown.stacks import StackedItems, size_cell, stack_chart, stack_of
from reports.text.language import Figure, Span, Words
from reports.text.messages import sentence
from reports.text.numbers import Rung, grouped
from reports.view import Block, Cell, Column, Items, Prose, Section, Table, TableRow
from reports.view.cells import figure_cell

G_PER_KWH = 1000.0
"""Grams per kWh in one tonne per MWh."""
MACHINES = ("gpu", "host", "network")
"""Items of the energy other than the building's own loads."""


def money(facts: Facts, words: Words) -> Section | None:
    """Show the bill of the requested precision and what of it is unused, energy, power and carbon."""
    answer = facts.answer
    plans = facts.fitting()
    if answer is None:
        return None
    blocks: list[Block] = []
    energy = words.figure("energy", answer[ENERGY])
    if answer["cost_lines"]:
        blocks.append(_cost_table(answer, words))
        idle = unused(facts, words)
        blocks += [] if idle is None else [Items(items=(idle,), tone="bad")]
    with_energy = [plan for plan in plans if plan["energy_items_mwh"] and plan[ENERGY]]
    if with_energy:
        stack = _energy_stack(with_energy, words)
        energy = words.figure("energy", answer[ENERGY], stack.rung, decimals=stack.decimals)
        blocks += [stack_chart(facts, stack, words("chart.energy"), words), _energy_table(facts, stack, words)]
        listed = factors(facts, words)
        blocks += [listed] if listed else []
    if not blocks:
        return None
    return Section(
        id="money", title=words("money.title"), lead=_lead(facts, answer, energy, words), blocks=tuple(blocks)
    )


def _lead(facts: Facts, answer: Doc, energy: Figure | None, words: Words) -> tuple[Span, ...]:
    """Describe energy, power and carbon, with the PUE and the grid factor for the reader to check them."""
    carbon, items = words.figure("carbon", answer[CARBON]), answer["energy_items_mwh"]
    parts: tuple[Span, ...] = ()
    if energy and energy.value and items:
        machines = sum(items[name] for name in MACHINES)
        pue = (machines + items["pue_overhead"]) / machines
        parts += words.spans("money.lead", energy=energy, pue=f"{pue:.4g}")
    if answer["mean_power_mw"] and answer["peak_power_mw"]:
        mean = words.figure("power_mw", answer["mean_power_mw"])
        parts += words.spans("money.mean", mean=mean or "", peak=words.value("power_mw", answer["peak_power_mw"]))
    if answer["gpu_power_w"]:
        parts += words.spans("money.power", power=words.figure("power_w", answer["gpu_power_w"]) or "")
    if energy and facts.amount:
        key = facts.worded("money.per_tokens", "money.per_images")
        parts += words.spans(key, energy=words.figure("energy", _per_million(answer[ENERGY], facts.amount)) or "")
    if carbon and energy and energy.value:
        factor = answer[CARBON]["mid"] * G_PER_KWH / answer[ENERGY]["mid"]
        parts += words.spans("money.carbon", factor=f"{factor:.4g}", carbon=carbon)
    market = _market(answer)
    if market is not None:
        parts += words.spans("money.market", carbon=words.figure("carbon", market) or "")
    return parts


def _market(plan: Doc) -> Doc | None:
    """Return the market-based carbon with its range: that of the energy times a fixed factor; None if it is unknown."""
    carbon, energy = plan.get("carbon_market_tco2e"), plan.get(ENERGY)
    if carbon is None or not energy or not energy["mid"]:
        return None
    return {end: carbon * energy[end] / energy["mid"] for end in ("low", "mid", "high")}


def _per_million(energy: Doc, amount: float) -> Doc:
    """Return the energy of a million tokens or images of the run."""
    return {end: energy[end] * MEGA / amount for end in ("low", "mid", "high")} | {"at_least": energy.get("at_least")}


MOST_LINES = 4
"""Maximum number of bill lines in the short answer, largest first; the rest are added up."""


def bill_in_words(facts: Facts, words: Words) -> Prose | None:
    """Describe the parts of the requested precision's cost for the short answer; None if it has only one line."""
    lines = (facts.answer or {}).get("cost_lines") or []
    if len(lines) == 1:
        lines = lines[0].get("children") or []
    if len(lines) < 2:
        return None
    amounts = sorted(((float(_usd(line)), line) for line in lines), key=lambda amount: -amount[0])
    named = MOST_LINES if len(amounts) > MOST_LINES + 1 else len(amounts)
    parts = [_line_in_words(sentence(line, "label", words.lang).text, usd, words) for usd, line in amounts[:named]]
    if amounts[named:]:
        others = sum(usd for usd, _ in amounts[named:])
        parts.append(_line_in_words(words("brief.other_lines", n=len(amounts) - named), others, words))
    return Prose(spans=words.spans("brief.bill", lines=words("list.semicolon").join(parts)))


def _line_in_words(label: str, usd: float, words: Words) -> str:
    """Describe a bill line within a sentence: its label starts in lower case, unless it begins with an abbreviation."""
    begins = label[:1].lower() + label[1:] if label[1:2].islower() else label
    return words("brief.bill_line", label=begins, usd=words.value("money", usd))


def more_carbon(facts: Facts, words: Words) -> Prose | None:
    """Describe the additional carbon figures that were requested, for the short answer."""
    plan = facts.answer or {}
    embodied, market = plan.get("carbon_with_embodied_tco2e"), _market(plan)
    if not plan.get(CARBON) or (embodied is None and market is None):
        return None
    figures = [words("brief.carbon.grid", carbon=_carbon(plan[CARBON], words))]
    if embodied is not None:
        figures.append(words("brief.carbon.embodied", carbon=_carbon(embodied, words)))
    if market is not None:
        figures.append(words("brief.carbon.market", carbon=_carbon(market, words)))
    return Prose(spans=words.spans("brief.carbon", figures=words.join(figures)))


def _carbon(estimate: Doc, words: Words) -> str:
    figure = words.figure("carbon", estimate)
    assert figure is not None
    return figure.full


def _usd(line: Doc) -> Decimal:
    """Return the amount of a line in whole cents: the sum of its sub-lines, else its quantity at its unit price."""
    children = line.get("children") or []
    price = line["unit_price_usd"] or {}
    if not children:
        return line_usd(line["usd"]["mid"], line["quantity"], price.get("mid"))
    return sum(map(_usd, children), Decimal(0))


def _walk(lines: list[Doc], depth: int = 0) -> Iterator[tuple[int, Doc]]:
    """Yield every line with its depth."""
    for line in lines:
        yield depth, line
        yield from _walk(line.get("children") or [], depth + 1)


def _amount_cell(amount: Decimal, usd: Doc, rung: Rung, words: Words) -> Cell:
    """Return an amount to the cent, and its range in the usual format."""
    ranged = words.figure("money", usd, rung)
    assert ranged is not None
    bound = words("at_least") if ranged.at_least else "{}"
    return Cell(text=bound.format(grouped(float(amount), 2)), detail=ranged.span, sort=ranged.value)


def _quantity(line: Doc, words: Words) -> str:
    if line["quantity"] is None:
        return ""
    number = grouped(line["quantity"], QUANTITY_DECIMALS if line["quantity"] >= 1 else MOST_DECIMALS)
    number = number.rstrip("0").removesuffix(".") if "." in number else number
    return words("cost.quantity", n=number, unit=words.name("unit", line["unit"]))


def _unit_price(line: Doc, words: Words) -> Cell:
    price = words.figure("unit_price", line["unit_price_usd"])
    if price is None:
        return Cell(text="")
    rung = words.ladder("unit_price")[0]
    digits = grouped(price.value, MOST_DECIMALS).rstrip("0")
    missing = rung.least - len(digits.split(".")[1])
    return Cell(text=rung.text.format(digits + "0" * missing), detail=price.span)


def _cost_table(answer: Doc, words: Words) -> Table:
    rung, lines = words.ladder("money")[0], answer["cost_lines"]
    rows = []
    for depth, line in _walk(lines):
        label = sentence(line, "label", words.lang)
        rows.append(
            TableRow(
                cells=(
                    Cell(text=words("tree.indent") * depth + label.text, foreign=label.foreign),
                    Cell(text=_quantity(line, words), sort=line["quantity"]),
                    _unit_price(line, words),
                    _amount_cell(_usd(line), line["usd"], rung, words),
                )
            )
        )
    last = _amount_cell(sum(map(_usd, lines), Decimal(0)), answer[COST], rung, words)
    rows.append(TableRow(cells=(Cell(text=words("cost.total")), Cell(text=""), Cell(text=""), last), strong=True))
    return Table(
        caption=words("table.cost", precision=words.name("precision", answer["precision"])),
        columns=(
            Column(head=words("column.line")),
            Column(head=words("column.quantity"), numeric=True),
            Column(head=words("column.unit_price"), numeric=True),
            Column(head=words.head(words.name("metric", COST), rung), numeric=True),
        ),
        rows=tuple(rows),
        sortable=False,
    )


ENERGY_ITEMS = (*MACHINES, "pue_overhead")
"""Items of `energy_items_mwh`."""


def _energy_items(plan: Doc) -> Doc:
    items = {name: size for name, size in plan["energy_items_mwh"].items() if name != "total"}
    return items | {"total": sum(items.values())}


def _energy_stack(plans: list[Doc], words: Words) -> StackedItems:
    rung = words.shared("energy", [plan[ENERGY] for plan in plans])
    stack = stack_of(plans, _energy_items, "energy", ENERGY_ITEMS, rung)
    unit = Decimal(repr(rung.per)).scaleb(-stack.decimals)
    return replace(stack, read=lambda plan: _as_shown(_energy_items(plan), unit))


def _as_shown(items: Doc, unit: Decimal) -> Doc:
    """Round items to the displayed unit so that they sum to the total; items that round to zero stay unchanged."""
    sizes = {name: Decimal(repr(float(size))) for name, size in items.items()}
    total = (sizes.pop("total") / unit).to_integral_value(ROUND_HALF_UP) * unit
    shown = dict(zip(sizes, apportioned(list(sizes.values()), unit, total), strict=True))
    return {name: float(size) or items[name] for name, size in shown.items()} | {"total": float(total)}


def _energy_table(facts: Facts, stack: StackedItems, words: Words) -> Table:
    carbon = words.shared("carbon", [plan[CARBON] for plan in stack.plans])
    rows = []
    for plan in stack.plans:
        items = stack.read(plan)
        cells = [size_cell(stack, items.get(name, 0.0), words) for name in stack.names]
        cells.append(figure_cell(words.figure("energy", plan[ENERGY], stack.rung, decimals=stack.decimals), words))
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
