"""The front: points in percent of both axes, the front in the order of its days, ranges beside the points."""

from __future__ import annotations

from typing import Any

import pytest

from reports.document.facts import Facts
from reports.page.build import checked
from reports.sections.comparison.pareto import pareto
from reports.text.language import words_for
from reports.view import ScatterChart, Table
from tests.reports import sample

WORDS = words_for("en")


def point(days: float, cost: float, *, front: bool = True, **more: Any) -> dict[str, Any]:
    def ends(mid: float) -> dict[str, Any]:
        return {"low": mid * 0.5, "mid": mid, "high": mid * 2, "at_least": False}

    base = {"precision": "fp8", "gpu": "h100-sxm5-80gb", "gpus": 512, "on_front": front, "energy_mwh": None}
    return base | {"duration_days": ends(days), "cost_usd": ends(cost)} | more


def blocks(*points: dict[str, Any]) -> tuple[ScatterChart, Table]:
    section = pareto(Facts(checked(sample.document() | {"pareto": {"points": list(points)}})), WORDS)
    assert section is not None
    chart, table = section.blocks
    assert isinstance(chart, ScatterChart)
    assert isinstance(table, Table)
    return chart, table


def test_points_stand_in_percent_of_axes_that_hold_every_range():
    # up to 2 x 40 days and 2 x $4000: axes to 80 and 8000
    chart, _ = blocks(point(40, 1000), point(10, 4000))
    slow, fast = chart.drawing.marks

    assert (slow.x, slow.x_low, slow.x_high) == (50, 25, 100)
    assert (slow.y, slow.y_low, slow.y_high) == (12.5, 6.25, 25)
    assert (fast.x, fast.y) == (12.5, 50)


def test_the_front_is_a_line_of_its_middles_by_days_and_other_points_are_rings_drawn_first():
    chart, table = blocks(point(40, 1000), point(20, 5000, front=False), point(10, 4000))

    assert chart.drawing.line == (pytest.approx((12.5, 40)), pytest.approx((50, 10)))
    assert [mark.shape for mark in chart.drawing.marks] == ["ring", "dot", "dot"]
    assert len(table.rows) == 2  # the front alone


def test_only_points_with_cost_and_days_are_drawn_and_none_makes_no_section():
    chart, _ = blocks(point(40, 1000), point(10, 1) | {"cost_usd": None})

    assert len(chart.drawing.marks) == 1
    facts = Facts(checked(sample.document() | {"pareto": {"points": [point(10, 1) | {"cost_usd": None}]}}))
    assert pareto(facts, WORDS) is None


def test_a_figure_that_no_point_has_gets_no_column():
    _, without = blocks(point(40, 1000))
    _, with_energy = blocks(point(40, 1000, energy_mwh={"low": 1, "mid": 2, "high": 3, "at_least": False}))

    assert len(with_energy.columns) == len(without.columns) + 1
