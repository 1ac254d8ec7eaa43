"""The unit in which an answer tells a figure: one for money, energy and GPU-hours, that of the sentence for a time."""

from __future__ import annotations

import pytest

from reports.document.facts import Facts
from reports.document.units import column_unit, unit_of
from reports.page.build import checked
from reports.text.language import words_for
from tests.reports import sample

WORDS = words_for("en")


@pytest.fixture
def facts() -> Facts:
    return Facts(checked(sample.document()))


def test_money_has_the_unit_of_the_whole_answer_whatever_a_column_holds(facts):
    small = [{"low": 1.0, "mid": 2.0, "high": 3.0}]

    assert column_unit(facts, "cost_usd", small, WORDS) == unit_of(facts, "cost_usd", WORDS)


def test_a_time_has_the_unit_of_the_sentence_unless_others_get_long_in_it(facts):
    days = facts.answer["duration_days"]
    hours = [{"low": 0.1, "mid": 0.2, "high": 0.3}]
    ages = [{"low": days["mid"], "mid": days["mid"] * 1e5, "high": days["mid"] * 2e5}]

    assert column_unit(facts, "duration_days", hours, WORDS) == column_unit(facts, "duration_days", [days], WORDS)
    assert column_unit(facts, "duration_days", ages, WORDS) == WORDS.shared("days", ages)
