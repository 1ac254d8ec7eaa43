"""Predicted against published: one logarithmic square, errors as ratios, and the rows of this GPU first."""

from __future__ import annotations

from typing import Any

import pytest

from reports.document.facts import Facts
from reports.page.build import checked
from reports.sections.evidence.accuracy import MOST_ROWS, accuracy, verify
from reports.text.language import words_for
from reports.view import ScatterChart, Section, Table
from tests.reports import sample
from tests.reports.extras import EXTRAS

WORDS = words_for("en")


def point(published: float, mid: float, **more: Any) -> dict[str, Any]:
    base = {"id": "run", "gpu": "h100-sxm5-80gb", "precision": "bf16", "metric": "tokens_per_s_per_gpu"}
    return base | {"published": published, "low": mid / 2, "mid": mid, "high": mid * 2} | more


def section_of(*points: dict[str, Any], **more: Any) -> Section:
    section = accuracy(Facts(checked(sample.document() | {"accuracy": {"points": list(points)} | more})), WORDS)
    assert section is not None
    return section


def test_points_stand_on_one_logarithmic_square():
    chart = section_of(point(10, 100), point(1000, 1000)).blocks[0]
    assert isinstance(chart, ScatterChart)
    first, second = chart.drawing.marks

    # from 10 to 10 000, three decades (the highest range ends at 2000)
    assert (first.x, first.y) == (pytest.approx(0), pytest.approx(33.33))
    assert (second.x, second.y) == (pytest.approx(66.67), pytest.approx(66.67))
    assert chart.drawing.line == ((0, 0), (100, 100))


def test_only_the_metric_of_most_points_is_drawn():
    points = [point(10, 20), point(10, 20), point(3, 4, metric="step_time_s")]
    chart = section_of(*points).blocks[0]
    assert isinstance(chart, ScatterChart)

    assert len(chart.drawing.marks) == 2


def test_the_error_is_predicted_over_published_less_one():
    table = section_of(point(1000, 1050), point(1000, 900)).blocks[-1]
    assert isinstance(table, Table)

    assert [row.cells[-1].sort for row in table.rows] == [pytest.approx(0.05), pytest.approx(-0.1)]
    assert table.rows[1].cells[-1].text.startswith("−10")


def test_runs_of_this_gpu_alone_are_listed_where_there_are_any():
    own, other = point(10, 10, id="own"), point(10, 10, id="other", gpu="a100-sxm4-80gb")

    assert [row.cells[0].text for row in section_of(other, own).blocks[-1].rows] == ["own"]
    assert [row.cells[0].text for row in section_of(other).blocks[-1].rows] == ["other"]
    assert len(section_of(*[own] * 30).blocks[-1].rows) == MOST_ROWS


def test_points_without_a_published_or_predicted_value_are_left_out():
    empty = [point(10, 10) | {"published": None}, point(10, 10) | {"mid": 0}]
    document = sample.document() | {"accuracy": {"points": empty}}

    assert accuracy(Facts(checked(document)), WORDS) is None
    assert len(section_of(*empty, point(10, 10)).blocks[0].drawing.marks) == 1


def test_the_summary_leaves_out_groups_without_runs():
    groups = {"overall": {"n": 3, "median_abs_error": 0.05, "p90_abs_error": None, "bias": -0.01, "coverage": 0.9},
              "by_precision": {"fp16": {"n": 0}, "bf16": {"n": 3, "median_abs_error": 0.05}}}  # fmt: skip
    table = section_of(point(10, 10), summary=groups).blocks[1]
    assert isinstance(table, Table)

    assert [cell.sort for cell in table.rows[0].cells[1:]] == [3, 0.05, None, -0.01, 0.9]
    assert [row.cells[0].text for row in table.rows[1:]] == ["BF16"]


def test_a_verification_shows_predicted_and_measured_with_the_error_between_them():
    section = verify(Facts(checked(sample.document() | {"verify": EXTRAS["verify"]})), WORDS)
    assert section is not None
    (table,) = section.blocks

    assert [[cell.sort for cell in row.cells[3:]] for row in table.rows] == [[0.41, 0.40, 0.025], [21.0, 20.6, 0.019]]
    nothing = {"cases": [EXTRAS["verify"]["cases"][0] | {"measured": None}]}
    assert verify(Facts(checked(sample.document() | {"verify": nothing})), WORDS) is None
