from __future__ import annotations

from reports.text.language import words_for
from reports.view.bars import range_bar, range_chart

WORDS = words_for("en")


def test_a_bar_is_drawn_from_the_document_and_told_as_its_figure():
    estimate = {"low": 40.0, "mid": 50.0, "high": 100.0, "at_least": True}
    figure = WORDS.figure("days", estimate)
    bar = range_bar("FP8", figure, estimate, strong=True)

    chart = range_chart("Duration", [bar], (0.0, 50.0, 100.0), ["0", "50", "100 days"], WORDS)

    (row,) = chart.drawing.rows
    assert (row.low, row.mid, row.high) == (40.0, 50.0, 100.0)
    assert (row.strong, row.at_least, row.text) == (True, True, figure.full)
    assert [tick.label for tick in chart.drawing.ticks] == ["0", "50", "100 days"]
    assert f"FP8: {figure.full}" in chart.description
