"""What makes the range wide: shares on one axis, the two largest strong."""

from __future__ import annotations

from reports.document.facts import Facts
from reports.page.build import checked
from reports.sections.evidence.drivers import driver_name, drivers
from reports.text.language import words_for
from reports.view import RangeChart, Table
from tests.reports import sample

WORDS = words_for("en")


def test_shares_are_drawn_on_an_axis_that_ends_at_a_round_one_with_the_two_largest_strong():
    section = drivers(Facts(checked(sample.document())), WORDS)
    assert section is not None
    chart, table = section.blocks
    assert isinstance(chart, RangeChart)
    assert isinstance(table, Table)

    # 50, 40 and 10 % on an axis to 50 %
    assert [row.mid for row in chart.drawing.rows] == [100, 80, 20]
    assert [row.strong for row in chart.drawing.rows] == [True, True, False]
    assert [row.cells[1].sort for row in table.rows] == [0.5, 0.4, 0.1]


def test_a_term_that_the_table_of_words_lacks_keeps_the_planner_s_label():
    assert driver_name({"term": "unheard_of.x", "label": "a new term"}, WORDS) == "a new term"


def test_without_shares_there_is_no_section():
    document = sample.document()
    document["plans"][-1]["uncertainty"] = []

    assert drivers(Facts(checked(document)), WORDS) is None
