from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reports import charts
from reports.charts import Bar
from reports.text.width import columns_of


@pytest.mark.parametrize(
    ("top", "expected"),
    [
        (6.2, (0, 2, 4, 6, 8)),
        (1.0, (0, 0.2, 0.4, 0.6, 0.8, 1.0)),
        (0.27, (0, 0.1, 0.2, 0.3)),
        (122, (0, 25, 50, 75, 100, 125)),
        (0, (0, 1)),
    ],
)
def test_an_axis_has_few_round_ticks_and_covers_its_values(top, expected):
    assert charts.linear_ticks(top) == pytest.approx(expected)


@given(top=st.floats(1e-9, 1e15))
def test_any_axis_has_two_to_six_ticks_and_wastes_less_than_half(top):
    ticks = charts.linear_ticks(top)

    assert 2 <= len(ticks) <= 6
    assert top <= ticks[-1] * (1 + 1e-7)
    assert ticks[-1] <= 2 * top * (1 + 1e-9)


def test_decades_lie_at_equal_distances_and_what_is_beyond_an_end_at_the_end():
    ticks = (1, 10, 100, 1000)

    assert [charts.on_log(value, ticks) for value in (0.1, 1, 10, 100, 1000, 1e4)] == pytest.approx(
        [0, 0, 33.33, 66.67, 100, 100], abs=0.01
    )


def test_bars_are_laid_out_in_percent_and_pixels():
    ticks = charts.ticks_on((0, 2, 4), ("0", "2", "4"))
    drawing = charts.place_rows([Bar(label="FP8", text="1 (0.5–2)", low=0.5, mid=1, high=2, strong=True)], ticks, 4)
    row = drawing.rows[0]

    assert (row.low, row.mid, row.high) == (12.5, 25, 50)
    assert (row.y, row.y_value, row.y_bar, drawing.height) == (0, 15, 21, 41)
    assert [tick.at for tick in ticks] == [0, 50, 100]
    assert [tick.anchor for tick in ticks] == ["start", "middle", "end"]


def test_a_bar_beyond_the_axis_ends_at_its_end():
    drawing = charts.place_rows([Bar(label="FP32", text="9", low=8, mid=9, high=12, beyond=True)], (), 4)

    assert (drawing.rows[0].low, drawing.rows[0].high, drawing.rows[0].beyond) == (100, 100, True)


def test_a_value_without_room_beside_its_label_goes_below():
    long = Bar(label="512 × H100 SXM5 80 GB in a far place", text="$0.86 million (0.65–1.12)", mid=1)
    row = charts.place_rows([long], (), 1).rows[0]

    assert row.value_below
    assert row.y_value == 32


def test_values_of_a_chart_stand_in_one_column():
    long = Bar(label="512 × H100 SXM5 80 GB in a far place", text="$0.86 million (0.65–1.12)", mid=1)
    rows = charts.place_rows([long, Bar(label="FP8", text="$1", mid=1)], (), 1).rows

    assert [row.value_below for row in rows] == [True, True]


def test_a_long_label_is_broken_into_lines_that_fit_a_phone():
    lines = charts.broken("compute on the critical path over the sum of its kernels, tuned stack")

    assert lines == ("compute on the critical path over", "the sum of its kernels, tuned stack")
    assert all(columns_of(line) <= charts.LINE for line in charts.broken("x" * 100))


def test_a_reference_that_dwarfs_the_others_does_not_set_the_scale():
    assert charts.scale_top([1.7, 6.2], [24]) == 6.2
    assert charts.scale_top([1.7, 6.2], [8]) == 8
    assert charts.scale_top([], [24]) == 24


@given(sizes=st.lists(st.just(0.0) | st.floats(1e-3, 100), min_size=1, max_size=14).filter(lambda s: sum(s) > 0))
def test_segments_touch_and_fill_the_bar_up_to_its_total(sizes):
    top = sum(sizes) * 1.25
    segments = charts.segments_of([(n, size, "") for n, size in enumerate(sizes)], top)

    assert sum(s.width for s in segments) == pytest.approx(80, abs=0.1)
    for before, after in itertools.pairwise(segments):
        assert after.at == pytest.approx(before.at + before.width, abs=0.03)


def test_a_letter_is_shown_only_where_it_has_room():
    wide, narrow = charts.segments_of([(0, 50, ""), (1, 1, "")], 100)

    assert (wide.letter, wide.show_letter) == ("A", True)
    assert (narrow.letter, narrow.show_letter) == ("B", False)


def test_the_label_before_the_last_is_tight_where_a_phone_has_no_room_for_it():
    roomy = charts.ticks_on((0, 2, 4), ("0", "2", "4"))
    crowded = charts.ticks_on((0, 25, 50, 75, 100, 125), ("0", "25", "50", "75", "100", "125 days"))

    assert not any(tick.tight for tick in roomy)
    assert [(tick.label, tick.tight) for tick in crowded if tick.tight] == [("100", "tight")]


def test_the_label_before_the_last_is_tighter_where_half_a_screen_has_no_room_for_it():
    long = charts.ticks_on((0, 1, 2, 3, 4), ("0", "50,000", "100,000", "150,000", "200,000 GPU-hours"))

    assert [(tick.label, tick.tight) for tick in long if tick.tight] == [("100,000", "tight"), ("150,000", "tighter")]


def test_a_line_is_drawn_upside_down_for_svg():
    assert charts.polyline([(0, 0), (1, 5)], 1, 10) == "0,100 100,50"
