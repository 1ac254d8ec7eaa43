"""Alternatives to the plan: elsewhere, on owned machines, at other hours, under power limits; also more carbon."""

from __future__ import annotations

from dataclasses import replace

from reports.document.facts import Doc, Facts
from reports.text.clean import clean
from reports.text.language import Words
from reports.text.names import pretty_gpu
from reports.text.numbers import Rung, grouped, magnitude
from reports.view import Block, Cell, Column, Section, Table, TableRow
from reports.view.cells import count_cell, none_cell, saving_tone, value_cell

MOST_PLACES = 8
WHOLE_DOLLARS = 10.0
"""Amount from which a comparison shows no cents."""


def alternatives(facts: Facts, words: Words) -> Section | None:
    """Return tables of `money` and `power_caps` with rows for the leading GPU, and more carbon figures of its plan."""
    money = facts.doc.get("money") or {}
    own = {
        name: [row for row in money.get(name) or () if row.get("gpu") == facts.gpu] for name in money if name != "here"
    }
    builders = (
        (_owned, own.get("owned")),
        (_places, own.get("elsewhere")),
        (_hours, own.get("start_hours")),
        (_limits, own.get("power_limits")),
        (_caps, [cap for cap in facts.doc.get("power_caps") or () if cap["gpu"] == facts.gpu]),
    )
    blocks: list[Block] = [build(rows, words) for build, rows in builders if rows]
    footprint = _footprint(facts, words)
    if footprint is not None:
        blocks.append(footprint)
    if not blocks:
        return None
    return Section(id="beside", title=words("beside.title"), lead=words.spans("beside.lead"), blocks=tuple(blocks))


def _change(saved: float | None, kind: str, words: Words) -> Cell:
    """Return the amount saved, negative if it costs more."""
    if saved is None:
        return none_cell(words)
    figure = words.figure(kind, saved)
    if figure is None or not saved:
        return Cell(text=words("nothing"), sort=0.0)
    return Cell(text=figure.text, sort=saved, tone=saving_tone(saved, saved))


def _figure_and_saving(
    planned: float | None, other: float | None, rung: Rung, decimals: int, words: Words
) -> tuple[Cell, Cell]:
    """Return another place's figure and its saving over the planned one: the difference of the figures as displayed."""
    unknown = none_cell(words)
    if other is None:
        return unknown, unknown
    shown = round(other / rung.per, decimals)
    cell = Cell(text=grouped(shown, decimals), sort=other)
    if planned is None:
        return cell, unknown
    saved = round(round(planned / rung.per, decimals) - shown, decimals)
    tone = saving_tone(saved, saved)
    return cell, Cell(text=grouped(saved, decimals) if saved else words("nothing"), sort=saved, tone=tone)


def _dollar_decimals(smallest_usd: float) -> int:
    """Return the decimals of amounts of which this is the smallest: cents below $10, three digits above $1,000."""
    return 2 if smallest_usd < WHOLE_DOLLARS else min(0, 2 - magnitude(smallest_usd))


def _carbon_here(places: list[Doc]) -> float | None:
    """Return the carbon of the plan as it is; None if no place can be compared with it."""
    known = (place["carbon_tco2e"] + place["saved_tco2e"] for place in places if place["saved_tco2e"] is not None)
    return next(known, None)


def _places(rows: list[Doc], words: Words) -> Table:
    places = rows[:MOST_PLACES]
    usd_here, carbon_here = places[0]["usd_here"], _carbon_here(places)
    dollars = words.ladder("money")[0]
    cents = _dollar_decimals(min((usd for usd in (usd_here, *(place["usd"] for place in places)) if usd), default=0.0))
    carbons = [carbon for carbon in (carbon_here, *(place["carbon_tco2e"] for place in places)) if carbon]
    carbon = words.shared("carbon", carbons)
    decimals = max(0, 2 - magnitude(min(carbons, default=0.0) / carbon.per))

    def row(
        head: Cell, provider: Cell, usd: float | None, carbon_t: float | None, *, planned: bool = False
    ) -> TableRow:
        costs = _figure_and_saving(usd_here, usd, dollars, cents, words)
        carbons = _figure_and_saving(carbon_here, carbon_t, carbon, decimals, words)
        if planned:
            costs, carbons = ((pair[0], none_cell(words)) for pair in (costs, carbons))
        return TableRow(cells=(head, provider, *costs, *carbons), strong=planned)

    built = [
        row(Cell(text=words("places.here")), Cell(text=words("places.planned")), usd_here, carbon_here, planned=True)
    ]
    for place in places:
        provider = Cell(text=clean(place["provider"]), detail=clean(place["region"]))
        built.append(row(Cell(text=clean(place["place"])), provider, place["usd"], place["carbon_tco2e"]))
    units = {"cost": dollars, "saved": dollars, "carbon": carbon, "saved_carbon": carbon}
    heads = ("place", "provider", *units)
    names = [words.head(words(f"column.{h}"), units[h]) if h in units else words(f"column.{h}") for h in heads]
    return Table(
        caption=words("table.places"),
        columns=tuple(Column(head=name, numeric=n > 1) for n, name in enumerate(names)),
        rows=tuple(built),
        notes=(words("note.places"),),
    )


def _owned(rows: list[Doc], words: Words) -> Table:
    owned = rows[0]
    hour = words.figure("unit_price", owned["usd_per_gpu_h"])
    assert hour is not None
    unknown = {"electricity"} if hour.at_least else set()  # without its price, do not show zero
    bounds = {"utilisation_ratio": "{}", "break_even_utilisation_ratio": words("at_least") if hour.at_least else "{}"}
    built = [
        TableRow(cells=(Cell(text=words.name("owned_item", name)),
                        value_cell("unit_price", None if name in unknown else usd, words)))
        for name, usd in owned["items_usd_per_gpu_h"].items()
    ]  # fmt: skip
    built.append(TableRow(cells=(Cell(text=words("owned.hour")), Cell(text=hour.text, detail=hour.span)), strong=True))
    rented = _within(
        "unit_price", owned.get("rental_low_usd_per_gpu_h"), owned["rental_usd_per_gpu_h"],
        owned.get("rental_high_usd_per_gpu_h"), words,
    )  # fmt: skip
    built.append(TableRow(cells=(Cell(text=words("owned.rented")), rented)))
    for name, bound in bounds.items():
        cell = value_cell("percent", owned[name], words)
        if name == "break_even_utilisation_ratio" and not hour.at_least:
            cell = _break_even(owned, words)
        cell = cell if owned[name] is None else replace(cell, text=bound.format(cell.text))
        built.append(TableRow(cells=(Cell(text=words(f"owned.{name}")), cell)))
    return Table(
        caption=words("table.owned"),
        columns=(Column(head=words("column.item")), Column(head=words("column.value"), numeric=True)),
        rows=tuple(built),
        wide=False,
        sortable=False,
    )


def _within(quantity: str, low: float | None, mid: float | None, high: float | None, words: Words) -> Cell:
    """Return a figure with its range; without one if either end is unknown, as in answers of earlier versions."""
    if mid is None or low is None or high is None:
        return value_cell(quantity, mid, words)
    figure = words.figure(quantity, {"low": low, "mid": mid, "high": high})
    assert figure is not None
    return Cell(text=figure.text, detail=figure.span, sort=mid)


def _break_even(owned: Doc, words: Words) -> Cell:
    """Return the utilisation from which owning costs less, and the range of it that the ranges of both prices leave."""
    low, mid, high = (owned.get(f"break_even_{name}_ratio") for name in ("low", "utilisation", "high"))
    if low is None or (mid is not None and high is not None):
        return _within("percent", low, mid, high, words)
    span = words("owned.from_to_never", low=words.value("percent", low))
    return replace(value_cell("percent", mid, words), detail=span)


def _hours(rows: list[Doc], words: Words) -> Table:
    built = tuple(
        TableRow(
            cells=(
                Cell(text=clean(tariff["tariff"])),
                Cell(text=clean(tariff["best_start"]), detail=words.value("unit_price", tariff["best_usd_per_kwh"])),
                Cell(
                    text=clean(tariff["dearest_start"]), detail=words.value("unit_price", tariff["dearest_usd_per_kwh"])
                ),
                _change(tariff["saved_usd"], "money", words),
            )
        )
        for tariff in rows
    )
    heads = ("tariff", "best_start", "dearest_start", "saved")
    return Table(
        caption=words("table.hours"),
        columns=tuple(Column(head=words(f"column.{h}"), numeric=h == "saved") for h in heads),
        rows=built,
    )


def _limits(rows: list[Doc], words: Words) -> Table:
    built = tuple(
        TableRow(
            cells=(
                Cell(text=words.value("power_w", cap["limit_w"])),
                Cell(text=words.name("precision", cap["precision"])),
                Cell(text=clean(cap["point"]), tone="code"),
                value_cell("percent", cap["time_ratio"], words),
                value_cell("percent", cap["energy_ratio"], words),
            )
        )
        for cap in rows
    )
    heads = ("limit", "precision", "run", "time_ratio", "energy_ratio")
    return Table(
        caption=words("table.limits"),
        columns=tuple(Column(head=words(f"column.{h}"), numeric=n > 2) for n, h in enumerate(heads)),
        rows=built,
    )


def _caps(rows: list[Doc], words: Words) -> Table:
    built = tuple(
        TableRow(
            cells=(
                Cell(text=pretty_gpu(facility["gpu"])),
                value_cell("power_mw", facility["cap_mw"], words),
                count_cell(facility["gpus_allowed"]),
                Cell(text=words("yes") if facility["binding"] else words("no")),
                Cell(text=f"{facility['gpus_wanted']:,}" if facility.get("gpus_wanted") else words("none")),
            )
        )
        for facility in rows
    )
    heads = ("gpu", "cap", "gpus_allowed", "binding", "gpus_wanted")
    return Table(
        caption=words("table.caps"),
        columns=tuple(Column(head=words(f"column.{h}"), numeric=n in (1, 2, 4)) for n, h in enumerate(heads)),
        rows=built,
    )


FOOTPRINT = (("embodied_tco2e", "carbon", 1.0), ("carbon_with_embodied_tco2e", "carbon", 1.0),
             ("sci_kg_per_run", "carbon", 1e-3), ("sci_kg_per_1e21_flop", "carbon", 1e-3))  # fmt: skip
"""Further carbon figures, with the factors that convert them to tonnes, the unit of the ladder."""


def _footprint(facts: Facts, words: Words) -> Table | None:
    plan = facts.answer or {}
    rows = []
    for name, kind, per in FOOTPRINT:
        estimate = plan.get(name)
        if estimate:
            scaled = {end: estimate[end] * per for end in ("low", "mid", "high")}
            figure = words.figure(kind, scaled | {"at_least": estimate.get("at_least")})
            assert figure is not None
            cells = (Cell(text=words(f"metric.{name}")), Cell(text=figure.text, detail=figure.span))
            rows.append(TableRow(cells=cells))
    if not rows:
        return None
    return Table(
        caption=words("table.footprint"),
        columns=(Column(head=words("column.figure")), Column(head=words("column.value"), numeric=True)),
        rows=tuple(rows),
        wide=False,
        sortable=False,
    )
