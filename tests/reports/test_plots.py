"""Geometry of histograms and intervals."""

from __future__ import annotations

import pytest

from reports.plots import axis_of, bars_path, even_ticks, span_on


def test_bars_stand_side_by_side_and_the_largest_is_as_high_as_the_box():
    assert bars_path([1, 4, 0, 2], 3) == "M3 100v-25h.9v25h.1v-100h.9v100zM6 100v-50h.9v50z"


def test_a_bar_that_nobody_would_see_and_a_histogram_of_nothing_are_not_drawn():
    assert bars_path([1000, 1], 0) == "M0 100v-100h.9v100z"
    assert bars_path([], 0) == bars_path([0, 0], 0) == ""


def test_a_range_that_goes_beyond_the_axis_is_cut_at_its_end():
    span = span_on("FP16", -24.0, 16.0, -14.0, 6.0)

    assert (span.low, span.high) == (0.0, 100.0)
    assert span_on("E2M1", -1.0, 2.585, -9.0, 7.0).low == 50.0


@pytest.mark.parametrize(
    ("low", "high", "ticks"),
    [
        (-0.022, 0.022, (-0.02, -0.01, 0.0, 0.01, 0.02)),
        (-30, 5, (-30, -20, -10, 0)),
        (0.0, 1.0, (0, 0.2, 0.4, 0.6, 0.8, 1)),
    ],
)
def test_ticks_are_round_and_within_the_span(low, high, ticks):
    assert even_ticks(low, high) == pytest.approx(ticks)


def test_ticks_have_their_place_on_an_axis_that_does_not_begin_at_zero():
    left, middle, right = axis_of((-2.0, 0.0, 2.0), ("a", "b", "c"), -2.0, 2.0)

    assert (left.at, middle.at, right.at) == (0.0, 50.0, 100.0)
    assert (left.anchor, middle.anchor, right.anchor) == ("start", "middle", "end")
