"""The factors between the machines' energy and the carbon of a run, each with its place, its scope and its date."""

from __future__ import annotations

from reports.document.facts import Doc, Facts
from reports.document.public import HIDDEN
from reports.text.clean import clean
from reports.text.language import Words
from reports.view import Cell, Items

PUE, GRID = "energy_items_mwh.pue_overhead", "carbon_tco2e.grid_factor"
FIGURES = (PUE, GRID, "carbon_market_tco2e", "embodied_tco2e")
"""Figures, as in `used_in`, that rest on one factor each."""


def factor_of(facts: Facts, figure: str) -> Doc | None:
    """Return the source of the factor behind one of `FIGURES`, for the leading GPU; None if there is none or its text
    was left out of this copy.
    """
    return next((source for source in facts.evidence_for(figure) if source["what"] != HIDDEN), None)


def factors(facts: Facts, words: Words) -> Items | None:
    """List the factors with what they count and their dates; None for an answer without any.

    The carbon of making a GPU is among them only where it was asked for. The sources have a section of their own, and
    `mpplan explain` names them.
    """
    asked = FIGURES if (facts.answer or {}).get("embodied_tco2e") else FIGURES[:-1]
    sources = [source for figure in asked if (source := factor_of(facts, figure)) is not None]
    cells = tuple(Cell(text=_dated(row), foreign=words.lang != "en") for row in sources)
    return Items(title=words("money.factors"), items=cells) if cells else None


def _dated(source: Doc) -> str:
    """Return what a factor counts, with its date unless that already says it."""
    what, date = clean(source["what"]), clean(source["date"] or "")
    return what if date in what else f"{what}, {date}"
