from __future__ import annotations

import pytest

from reports.text.language import words_for
from reports.view import Cell
from reports.view.cells import count_cell, figure_cell, none_cell, saving_tone, value_cell

WORDS = words_for("en")


def test_a_figure_shows_its_range_beside_it_and_sorts_by_its_middle():
    figure = WORDS.figure("days", {"low": 12.0, "mid": 14.9, "high": 18.0})

    assert figure_cell(figure, WORDS) == Cell(text="14.9", detail="12.0–18.0", sort=14.9)


def test_what_is_unknown_is_quiet_and_has_no_rank():
    assert figure_cell(None, WORDS) == value_cell("money", None, WORDS) == none_cell(WORDS)
    assert none_cell(WORDS) == Cell(text="–", tone="quiet")


def test_a_count_has_separators_and_sorts_as_a_number():
    assert count_cell(16_384) == count_cell(16_384.0) == Cell(text="16,384", sort=16_384.0)


@pytest.mark.parametrize(
    ("low", "high", "tone"), [(0.1, 0.3, "good"), (-0.3, -0.1, "bad"), (-0.1, 0.3, ""), (0.0, 0.3, ""), (0.0, 0.0, "")]
)
def test_a_saving_has_a_tone_only_where_its_whole_range_is_on_one_side_of_zero(low, high, tone):
    assert saving_tone(low, high) == tone


@pytest.mark.parametrize(
    ("detail", "plain"),
    [
        ("", "704"),
        ("plan", "704 (plan)"),
        ("计划", "704（计划）"),
        ("27–38", "704 (27–38)"),
        ("−9 至 30", "704 (−9 至 30)"),
    ],
)
def test_a_detail_of_chinese_words_is_in_full_width_brackets_and_a_range_is_not(detail, plain):
    assert Cell(text="704", detail=detail).plain == plain
