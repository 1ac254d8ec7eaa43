"""The factors between the machines' energy and the carbon of a run, each with its place, its scope and its source."""

from __future__ import annotations

from reports.document.facts import Doc, Facts
from reports.text.clean import clean
from reports.text.language import Words
from reports.view import Cell, Items

PUE, GRID = "energy_items_mwh.pue_overhead", "carbon_tco2e.grid_factor"
FIGURES = (PUE, GRID, "carbon_market_tco2e", "embodied_tco2e")
"""Figures, as in `used_in`, that rest on one factor each."""


def factor_of(facts: Facts, figure: str) -> Doc | None:
    """Return the source of the factor behind one of `FIGURES`, for the leading GPU; None if the answer has none."""
    return next((source for source in facts.evidence_for(figure)), None)


def factors(facts: Facts, words: Words) -> Items | None:
    """List the factors with what they count, their year and their source; None for an answer without carbon."""
    sources = [source for figure in FIGURES if (source := factor_of(facts, figure)) is not None]
    cells = tuple(Cell(text=clean(row["what"]), detail=_origin(row), foreign=words.lang != "en") for row in sources)
    return Items(title=words("money.factors"), items=cells) if cells else None


def _origin(source: Doc) -> str:
    """Return the source of a factor and its date, unless the source ends in it."""
    origin, date = clean(source["source"]), clean(source["date"] or "")
    return origin if not date or origin.endswith(date) else f"{origin}; {date}"
