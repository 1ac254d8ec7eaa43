"""The charts of a real run, against its figures."""

from __future__ import annotations

import pytest

from reports.sections.safety.drawn import histograms, intervals, layers, scale
from reports.text.language import words_for
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


def test_a_share_that_becomes_zero_stands_beside_what_a_scale_makes_of_it():
    chart = histograms(SHOWN, EN)

    assert chart is not None
    spans = {span.label.split(":")[0]: span for span in chart.drawing.spans}
    gradients = {form["format"]: form for form in SHOWN["magnitudes"][2]["formats"]}
    for name, label in (("e4m3", "FP8 E4M3"), ("e2m1", "FP4 E2M1")):
        share = EN.value("percent", gradients[name]["flushed_scaled_ratio"])
        assert spans[label].detail.startswith(f"with the best scale per layer: {share}")
        assert share in chart.description
    assert spans["FP4 E2M1"].detail.endswith("; NVFP4 scales blocks of 16")
    bare = [
        row | {"formats": [form | {"flushed_scaled_ratio": None} for form in row["formats"]]}
        for row in SHOWN["magnitudes"]
    ]
    old = histograms(SHOWN | {"magnitudes": bare}, EN)
    assert old is not None
    assert {span.detail for span in old.drawing.spans} == {""}


def test_the_path_of_the_scale_is_the_defaults_and_ends_with_the_run_beside_the_stress_test():
    path = SHOWN["scale_path"] | {"steps": 49, "skipped": 1, "growth_interval": 2000, "path": [[0, 16.0], [1, 15.0]]}
    stress = {"name": "short", "steps": 70, "skipped": 13, "growth_interval": 7, "path": [[0, 24.0], [1, 23.0]]}
    chart = scale(SHOWN | {"scale_path": path, "scale_stress": stress}, EN)

    assert chart is not None
    ends = [float(trace.points.split()[-1].split(",")[0]) for trace in chart.drawing.traces]
    assert ends == pytest.approx([100 * 49 / 80, 100 * 70 / 80], abs=0.1)  # on an axis to 80
    assert [trace.name for trace in chart.drawing.traces] == [
        "default: from 2¹⁶, growth every 2,000 steps; 1 of 49 steps skipped",
        "stress test: from 2²⁴, growth every 7 steps; 13 of 70 steps skipped",
    ]
    assert chart.drawing.y_ticks[0].label == "2⁰"
    alone = scale(SHOWN | {"scale_path": path, "scale_stress": None}, EN)
    assert alone is not None
    assert [trace.name for trace in alone.drawing.traces] == [chart.drawing.traces[0].name]


def test_a_scale_that_fell_below_one_stays_within_the_axes():
    path = SHOWN["scale_path"] | {
        "steps": 400,
        "skipped": 400,
        "path": [[number, 16.0 - number] for number in range(60)],
    }
    chart = scale(SHOWN | {"scale_path": path, "scale_stress": None}, EN)

    assert chart is not None
    heights = [float(point.split(",")[1]) for point in chart.drawing.traces[0].points.split()]
    assert 0 <= min(heights) < max(heights) <= 100
    # from 2⁻⁵⁰ up: 2⁻⁴³ is 7 of 80 above the foot
    assert max(heights) == pytest.approx(100 * (1 - 7 / 80), abs=0.1)
    assert [tick.label for tick in chart.drawing.y_ticks] == ["2⁻⁵⁰", "2⁻³⁰", "2⁻¹⁰", "2¹⁰", "2³⁰"]


def test_an_interval_lies_about_zero_over_the_margin():
    chart = intervals(SHOWN, EN)

    assert chart is not None
    low, high = chart.drawing.band or (0.0, 0.0)
    assert low == pytest.approx(50 * (1 - 1 / 1.1), abs=0.01)
    assert low + high == pytest.approx(100)
    own = [pair for pair in SHOWN["pairs"] if pair["task"] == "char-lm"]  # the other task stands in the table
    for row, pair in zip(chart.drawing.rows, own, strict=True):
        assert row.dot == pytest.approx(50 * (1 + pair["mid"] / 0.022), abs=0.01)
    assert [row.label for row in chart.drawing.rows][-1] == "NVFP4, emulated"


def test_a_pair_without_an_interval_is_not_drawn():
    first = SHOWN["pairs"][0] | {"low": None, "mid": None, "high": None}
    chart = intervals(SHOWN | {"pairs": [first, *SHOWN["pairs"][1:]]}, EN)

    assert chart is not None
    assert len(chart.drawing.rows) == 3


def test_layers_stand_in_the_documents_order_and_what_is_kept_high_or_not_finite_is_marked():
    rows = [row | {"kept_high": number == 1} for number, row in enumerate(SHOWN["layers"])]
    rows[2] = rows[2] | {"gradient_error_ratio": None}
    chart = layers(SHOWN | {"layers": rows}, EN)

    assert chart is not None
    assert [row.label.split(" and ")[0] for row in chart.drawing.rows] == [row["name"] for row in rows]
    assert [row.strong for row in chart.drawing.rows] == [False, True, False, False, False]
    assert chart.drawing.rows[1].text.endswith("kept in high precision")
    assert (chart.drawing.rows[2].high, chart.drawing.rows[2].text.startswith("not finite")) == (100.0, True)


def test_a_layer_without_a_loss_has_none_and_a_number_alone_is_called_a_layer():
    row = SHOWN["layers"][0] | {"name": "6", "layers": 1, "loss_change": None, "gradient_error_ratio": 0.1}
    chart = layers(SHOWN | {"layers": [row]}, EN)

    assert chart is not None
    assert (chart.drawing.rows[0].label, chart.drawing.rows[0].text) == ("layer 6", "10%")


def test_the_axis_of_steps_has_no_fractions():
    path = SHOWN["scale_path"] | {"steps": 1, "skipped": 0, "path": [[0, 16.0]]}
    chart = scale(SHOWN | {"scale_path": path, "scale_stress": None}, EN)

    assert chart is not None
    assert [tick.label for tick in chart.drawing.x_ticks] == ["0", "1", "2", "3", "4", "5"]


def test_what_a_run_cut_short_does_not_have_is_not_drawn():
    empty = SHOWN | {
        "magnitudes": [],
        "scale_path": None,
        "scale_stress": None,
        "pairs": [],
        "layers": [],
        "mixtures": [],
    }

    drawn = [make(empty, EN) for make in (histograms, scale, intervals, layers)]
    assert drawn == [None] * 4
