"""The unit in which an answer tells a figure, so that its sentences, tables and charts tell it alike."""

from __future__ import annotations

from reports.document.facts import COST, DURATION, ENERGY, QUANTITY, Doc, Facts
from reports.text.language import Words
from reports.text.numbers import LONG, Rung, rung_for

ONE_UNIT = (COST, ENERGY, "gpu_hours")
"""Figures that an answer tells in sentences and several tables: all of them take one unit."""


def unit_of(facts: Facts, metric: str, words: Words) -> Rung:
    """The unit of a figure in the whole answer: of every plan that fits and of the counts around the leading one."""
    told = [plan[metric] for plan in facts.doc["plans"] if plan["fits"] and plan[metric]]
    return words.shared(QUANTITY[metric], [*told, *(point[metric] for point in facts.curve if point.get(metric))])


def column_unit(facts: Facts, metric: str, values: list[Doc], words: Words) -> Rung:
    """The unit of a column or an axis: that of the whole answer, or one for its own values.

    A time is told in the unit in which the sentence tells that of the leading plan, unless others get long in it.
    """
    if metric in ONE_UNIT:
        return unit_of(facts, metric, words)
    own = words.shared(QUANTITY[metric], values)
    if metric != DURATION or facts.answer is None or not facts.answer[DURATION] or not values:
        return own
    told = rung_for(words.ladder(QUANTITY[metric]), facts.answer[DURATION]["mid"], facts.answer[DURATION]["high"])
    return told if max(value["mid"] for value in values) < LONG * told.per else own
