"""Cells for many tables: a figure, a value, a count, a missing figure, and the tone of a saving."""

from __future__ import annotations

from reports.text.language import Figure, Words
from reports.view import Cell


def none_cell(words: Words) -> Cell:
    """Return the cell for a missing figure."""
    return Cell(text=words("none"), tone="quiet")


def figure_cell(figure: Figure | None, words: Words) -> Cell:
    """Return value and range for a column whose header has the unit."""
    if figure is None:
        return none_cell(words)
    return Cell(text=figure.bare, detail=figure.span, sort=figure.value)


def value_cell(quantity: str, value: float | None, words: Words) -> Cell:
    """Return a single number with its unit."""
    return none_cell(words) if value is None else Cell(text=words.value(quantity, value), sort=value)


def count_cell(count: float) -> Cell:
    """Return a whole number with thousands separators."""
    return Cell(text=f"{count:,.0f}", sort=float(count))


def saving_tone(low: float, high: float) -> str:
    """Return the tone of a saving: `good` or `bad` if its whole range is above or below zero, else empty."""
    return "good" if low > 0 else "bad" if high < 0 else ""
