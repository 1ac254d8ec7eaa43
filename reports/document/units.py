"""Choose one unit per figure, so that the sentences, tables and charts of an answer agree."""

from __future__ import annotations

from reports.document.facts import COST, DURATION, ENERGY, QUANTITY, Doc, Facts
from reports.text.language import Words
from reports.text.numbers import LONG, Rung, rung_for

ONE_UNIT = (COST, ENERGY, "gpu_hours")
"""Figures that appear in sentences and several tables; they have the same unit everywhere."""


def unit_of(facts: Facts, metric: str, words: Words) -> Rung:
    """Return the unit of a figure in the whole answer, from all plans that fit and all points of the curve."""
    estimates = [plan[metric] for plan in facts.doc["plans"] if plan["fits"] and plan[metric]]
    return words.shared(QUANTITY[metric], [*estimates, *(point[metric] for point in facts.curve if point.get(metric))])


def column_unit(facts: Facts, metric: str, values: list[Doc], words: Words) -> Rung:
    """Return the unit of a column or an axis: the unit of the whole answer, or one that suits its own values.

    A duration uses the unit of the leading plan's duration in the sentence, unless other values get long in it.
    """
    if metric in ONE_UNIT:
        return unit_of(facts, metric, words)
    own = words.shared(QUANTITY[metric], values)
    if metric != DURATION or facts.answer is None or not facts.answer[DURATION] or not values:
        return own
    leading = rung_for(words.ladder(QUANTITY[metric]), facts.answer[DURATION]["mid"], facts.answer[DURATION]["high"])
    return leading if max(value["mid"] for value in values) < LONG * leading.per else own
