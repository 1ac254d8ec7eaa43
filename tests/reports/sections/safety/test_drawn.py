"""The charts of a real run, against its figures."""

from __future__ import annotations

import pytest

from reports.sections.safety.drawn import front, histograms, intervals, layers, scale
from reports.text.language import words_for
from reports.view import Prose, ScatterChart, Table
from tests.reports.sections.safety.shown import document_shown

EN = words_for("en")
SHOWN = document_shown()["numerics"]


def test_histograms_share_an_axis_on_which_formats_have_their_place():
    chart = histograms(SHOWN, EN)

    assert chart is not None
    assert [panel.label for panel in chart.drawing.panels] == ["Weights", "Activations", "Gradients"]
    fp16, e4m3 = (next(span for span in chart.drawing.spans if name in span.label) for name in ("FP16", "E4M3"))
    # 2^-24 and 2^-9: 15 exponents apart
    assert e4m3.low - fp16.low == pytest.approx(100 * 15 / chart.drawing.exponents, abs=0.02)
    assert "become zero" in chart.description


def test_the_path_of_the_scale_ends_with_the_run():
    chart = scale(SHOWN, EN)

    assert chart is not None
    last = chart.drawing.traces[0].points.split()[-1]
    assert float(last.split(",")[0]) == pytest.approx(100 * 70 / 80)  # 70 steps on an axis to 80
    assert chart.drawing.traces[0].name == "13 steps of 70 skipped, growth after 7"


def test_an_interval_lies_about_zero_over_the_margin():
    chart = intervals(SHOWN, EN)

    assert chart is not None
    low, high = chart.drawing.band or (0.0, 0.0)
    assert low == pytest.approx(50 * (1 - 1 / 1.1), abs=0.01)
    assert low + high == pytest.approx(100)
    for row, pair in zip(chart.drawing.rows, SHOWN["pairs"], strict=True):
        assert row.dot == pytest.approx(50 * (1 + pair["mid"] / 0.022), abs=0.01)
    assert [row.label for row in chart.drawing.rows][-1] == "NVFP4, emulated"


def test_the_most_sensitive_layer_has_the_longest_bar():
    chart = layers(SHOWN, EN)

    assert chart is not None
    assert chart.drawing.rows[0].label == "head"
    assert chart.drawing.rows[0].high == max(row.high for row in chart.drawing.rows)


def test_the_front_is_drawn_and_told_with_the_same_figures():
    chart, table = front(SHOWN, EN)

    assert isinstance(chart, ScatterChart)
    assert isinstance(table, Table)
    on_front = [point for point in SHOWN["mixtures"] if point["on_front"]]
    assert len(chart.drawing.line) == len(on_front) == sum(mark.shape == "dot" for mark in chart.drawing.marks)
    assert [row.cells[0].text for row in table.rows][2] == "First 20% of the steps in BF16, then NVFP4"
    assert "mixture of the two plans" in table.notes[0]


def test_without_a_plan_in_the_precision_the_front_says_what_is_missing():
    (note,) = front(document_shown(lower="fp8")["numerics"], EN)

    assert isinstance(note, Prose)
    assert note.plain.startswith("Policies and schedules in NVFP4 have no time here")


def test_what_a_run_cut_short_does_not_have_is_not_drawn():
    empty = SHOWN | {"magnitudes": [], "scale_path": None, "pairs": [], "layers": [], "mixtures": []}

    drawn = [make(empty, EN) for make in (histograms, scale, intervals, layers)]
    assert drawn == [None] * 4
    assert front(empty, EN) == []
