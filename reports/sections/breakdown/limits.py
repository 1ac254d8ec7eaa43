"""The power limits that were searched for: as sold, the cheapest, the greenest, from `power_limit_search`."""

from __future__ import annotations

from reports.document.facts import Doc, Facts
from reports.text.clean import clean
from reports.text.language import Words
from reports.text.names import pretty_gpu
from reports.view import Cell, Column, Section, Table, TableRow

CHOICES = {"sold": "limits.sold", "cheapest": "limits.cheapest", "greenest": "limits.greenest"}
"""The limits shown, in order, and what they are called."""
FIGURES = (("duration_days", "days"), ("energy_mwh", "energy"), ("cost_usd", "money"))
"""Figures of a limit and the units they are written in."""


def limits(facts: Facts, words: Words) -> Section | None:
    """What the cheapest and the greenest limit of each GPU cost in time, money and energy against the one as sold."""
    searches = facts.doc.get("power_limit_search") or ()
    if not searches:
        return None
    lead = words.spans("limits.lead", precision=words.name("precision", clean(searches[0]["precision"])))
    tables = tuple(_table(search, words) for search in searches)
    return Section(id="limits", title=words("limits.title"), lead=lead, blocks=tables)


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
    planned = search.get("cheapest") or search["greenest"]
    cells = (
        Cell(text=words(CHOICES[name])),
        Cell(text=words.value("power_w", point["limit_w"]), sort=point["limit_w"]),
        Cell(text=f"{point['gpus']:,}", sort=float(point["gpus"])),
        *figures,
    )
    return TableRow(cells=cells, strong=point == planned)


def _figure(kind: str, value: float | None, sold: float | None, words: Words) -> Cell:
    """A figure, with its change against the limit as sold."""
    if value is None or not sold:
        return Cell(text=words("none"), tone="quiet")
    change = value / sold - 1.0
    detail = f"{change:+.1%}".replace("-", "−") if abs(change) >= 0.0005 else ""
    return Cell(text=words.value(kind, value), detail=detail, sort=value)
