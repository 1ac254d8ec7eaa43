"""The power limits from `power_limit_search`: the default one, the cheapest and the greenest."""

from __future__ import annotations

from reports.document.facts import Doc, Facts
from reports.text.clean import clean
from reports.text.language import Words, strong
from reports.text.names import pretty_gpu
from reports.text.numbers import with_minus
from reports.view import Cell, Column, Prose, Section, Table, TableRow
from reports.view.cells import count_cell, none_cell

CHOICES = {"sold": "limits.sold", "cheapest": "limits.cheapest", "greenest": "limits.greenest"}
"""The limits shown, in order, with the keys of their names."""
FIGURES = (("duration_days", "days"), ("energy_mwh", "energy"), ("cost_usd", "money"))
"""Figures of a limit, with the ladders of their units."""
NAMES = {"days": "limits.of_days", "energy": "limits.of_energy", "money": "limits.of_money"}
"""Keys of the figures' names in a sentence, by unit ladder."""
LEAST_CHANGE_RATIO = 0.005
"""Changes below this share are not mentioned in the sentence."""


def limits(facts: Facts, words: Words) -> Section | None:
    """Compare the time, cost and energy at each GPU's cheapest and greenest limits with those at the default limit."""
    searches = facts.doc.get("power_limit_search") or ()
    if not searches:
        return None
    lead = words.spans("limits.lead", precision=words.name("precision", clean(searches[0]["precision"])))
    tables = tuple(_table(search, words) for search in searches)
    return Section(id="limits", title=words("limits.title"), lead=lead, blocks=tables)


def short_limits(facts: Facts, words: Words) -> Prose | None:
    """Return a sentence on the planned limit of the leading GPU and its savings compared with the default limit."""
    search = next((s for s in facts.doc.get("power_limit_search") or () if s["gpu"] == facts.gpu), None)
    if search is None:
        return None
    sold, planned, green = search["sold"], _planned(search), search["greenest"]
    values = {
        "limit": strong(words.value("power_w", planned["limit_w"])),
        "goal": words("limits.costs_least" if search.get("cheapest") else "limits.uses_least"),
        "count": f"{search['limits']:,}",
        "least": words.value("power_w", search["least_w"]),
    }
    if planned != sold:
        as_sold = words.value("power_w", sold["limit_w"])
        return Prose(spans=words.spans("limits.brief", **values, sold=as_sold, changes=_changes(planned, sold, words)))
    spans = words.spans("limits.brief_sold", **values)
    if green != sold:
        limit, gpus = words.value("power_w", green["limit_w"]), f"{green['gpus']:,}"
        spans += words.spans("limits.brief_green", limit=limit, gpus=gpus, changes=_changes(green, sold, words))
    return Prose(spans=spans)


def _planned(search: Doc) -> Doc:
    """Return the limit used for planning: the cheapest, or without prices the one with the least energy."""
    planned: Doc = search.get("cheapest") or search["greenest"]
    return planned


def _changes(point: Doc, sold: Doc, words: Words) -> str:
    """Return `13% less energy and 30% more money`: the changes at one limit compared with the default limit."""
    parts = []
    for key, kind in reversed(FIGURES):
        if point.get(key) is None or not sold.get(key):
            continue
        change = point[key] / sold[key] - 1.0
        if abs(change) >= LEAST_CHANGE_RATIO:
            share = words.value("change", abs(change))
            what = words(NAMES[kind])
            parts.append(words("limits.less" if change < 0 else "limits.more", share=share, what=what))
    return words.join(parts) or words("limits.alike")


def _table(search: Doc, words: Words) -> Table:
    shown = [name for name in CHOICES if search.get(name)]
    heads = ("limit_choice", "limit", "gpus", "duration", "energy_ratio", "cost")
    return Table(
        caption=words("table.limit_search", gpu=pretty_gpu(search["gpu"]), limits=search["limits"]),
        columns=tuple(Column(head=words(f"column.{head}"), numeric=number > 0) for number, head in enumerate(heads)),
        rows=tuple(_row(name, search, words) for name in shown),
        notes=(words("limits.note", least=words.value("power_w", search["least_w"])),),
        sortable=False,
    )


def _row(name: str, search: Doc, words: Words) -> TableRow:
    point, sold = search[name], search["sold"]
    figures = tuple(_figure(kind, point.get(key), sold.get(key), words) for key, kind in FIGURES)
    planned = _planned(search)
    cells = (
        Cell(text=words(CHOICES[name])),
        Cell(text=words.value("power_w", point["limit_w"]), sort=point["limit_w"]),
        count_cell(point["gpus"]),
        *figures,
    )
    return TableRow(cells=cells, strong=point == planned)


def _figure(kind: str, value: float | None, sold: float | None, words: Words) -> Cell:
    """Return a figure with its change compared with the default limit."""
    if value is None or not sold:
        return none_cell(words)
    change = value / sold - 1.0
    detail = with_minus(f"{change:+.1%}") if abs(change) >= 0.0005 else ""
    return Cell(text=words.value(kind, value), detail=detail, sort=value)
