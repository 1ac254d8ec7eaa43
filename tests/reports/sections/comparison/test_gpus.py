"""Several GPUs: bars on one axis, cost where any is known and GPU-hours where none is, reasons of those left out."""

from __future__ import annotations

from typing import Any

import pytest

from reports.document.facts import Facts
from reports.page.build import checked
from reports.sections.comparison.gpus import gpus
from reports.text.language import words_for
from reports.view import RangeChart, Section, Table
from tests.reports import sample

WORDS = words_for("en")


def section_of(document: dict[str, Any]) -> Section:
    section = gpus(Facts(checked(document)), WORDS)
    assert section is not None
    return section


def test_a_single_gpu_is_not_compared_with_itself():
    assert gpus(Facts(checked(sample.document())), WORDS) is None


def test_bars_are_as_long_as_what_each_gpu_costs():
    chart = section_of(sample.several_gpus_document()).blocks[0]
    assert isinstance(chart, RangeChart)
    h100, h200, b200 = (row.mid for row in chart.drawing.rows)

    # price over speed against the H100: 3.2 / 2.5 / 1.05 and 4.6 / 2.5 / 2.1
    assert h200 / h100 == pytest.approx(3.2 / 2.5 / 1.05, abs=0.002)
    assert b200 / h100 == pytest.approx(4.6 / 2.5 / 2.1, abs=0.002)
    assert [row.strong for row in chart.drawing.rows] == [False, False, True]  # the cheapest leads


def test_without_any_price_gpu_hours_are_drawn():
    document = sample.several_gpus_document()
    for plan in document["plans"]:
        plan["cost_usd"] = None
    chart = section_of(document).blocks[0]
    assert isinstance(chart, RangeChart)
    h100, _, b200 = (row.mid for row in chart.drawing.rows)

    assert b200 / h100 == pytest.approx(1 / 2.1, abs=0.002)


def test_a_gpu_on_which_it_does_not_fit_is_in_the_table_with_its_reason_and_not_in_the_chart():
    document = sample.several_gpus_document()
    for plan in document["plans"]:
        if plan["gpu"] == "h200-sxm-141gb":
            plan |= {"fits": False, "why_not": "needs 151 GiB per GPU, 10.6 GiB more than there is"}
    chart, table = section_of(document).blocks[:2]
    assert isinstance(chart, RangeChart)
    assert isinstance(table, Table)

    assert len(chart.drawing.rows) == 2
    assert len(table.rows) == 3
    assert [len(row.cells) for row in table.rows] == [7, 2, 7]
    assert table.rows[1].cells[1].tone == "bad"
