"""What makes the range wide: shares on one axis, the two largest strong, and moves of this GPU only."""

from __future__ import annotations

from typing import Any

from reports.document.facts import Facts
from reports.page.build import checked
from reports.sections.evidence.drivers import driver_name, drivers
from reports.text.language import words_for
from reports.view import RangeChart, Section, Table
from tests.reports import sample
from tests.reports.extras import EXTRAS

WORDS = words_for("en")


def section_of(**changes: Any) -> Section:
    section = drivers(Facts(checked(sample.document() | changes)), WORDS)
    assert section is not None
    return section


def test_shares_are_drawn_on_an_axis_that_ends_at_a_round_one_with_the_two_largest_strong():
    chart, table, *_ = section_of().blocks
    assert isinstance(chart, RangeChart)
    assert isinstance(table, Table)

    # 50, 40 and 10 % on an axis to 50 %
    assert [row.mid for row in chart.drawing.rows] == [100, 80, 20]
    assert [row.strong for row in chart.drawing.rows] == [True, True, False]
    assert [row.cells[1].sort for row in table.rows] == [0.5, 0.4, 0.1]


def test_a_term_that_the_table_of_words_lacks_keeps_the_planner_s_label():
    assert driver_name({"term": "unheard_of.x", "label": "a new term"}, WORDS) == "a new term"


def test_moves_of_another_gpu_are_left_out():
    row = EXTRAS["sensitivity"][0]
    table = section_of(sensitivity=[row, row | {"gpu": "h200-sxm-141gb"}, row | {"gpu": None}]).blocks[-1]
    assert isinstance(table, Table)

    assert len(table.rows) == 2
    assert [cell.sort for cell in table.rows[0].cells if cell.sort is not None] == [690_000, 1_030_000]


def test_without_shares_and_moves_there_is_no_section():
    document = sample.document()
    document["plans"][-1]["uncertainty"] = []

    assert drivers(Facts(checked(document)), WORDS) is None
