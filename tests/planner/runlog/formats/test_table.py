"""Tables of steps: what is one, and what a row of it tells."""

from __future__ import annotations

import pytest

from planner.runlog.events import DamagedError
from planner.runlog.formats.table import cells_of, is_table, names_of, row_steps


@pytest.mark.parametrize(
    ("first", "table"),
    [
        ("step,step_time_s", True),
        ('"step", "timestamp"', True),
        ('{"step_time_ms": 5}', True),
        ("_step,_timestamp", True),
        ("epoch,loss", False),
        ('{"loss": 5}', False),
        ("{", False),
        ("", False),
        ("[1]", False),
    ],
)
def test_a_table_is_told_by_its_columns(first, table):
    assert is_table(first) is table


def test_names_and_cells_go_together():
    assert names_of("a, b") == {"a", "b"}
    assert cells_of("a, b", '1, "x, y"') == {"a": "1", "b": "x, y"}


def test_a_row_gives_milliseconds_as_seconds_and_data_where_it_has_them():
    (step,) = row_steps("step,step_time_ms,data_loading_s", "7,2000,0.5")

    assert (step.number, step.duration_s, step.data_s) == (7, 2.0, 0.5)
    assert list(row_steps("step,step_time_s", "7,")) == []


@pytest.mark.parametrize(
    ("row", "words"),
    [("1", "expected 2 cells"), ("1,nan", "above 0"), ("1,-2", "above 0")],
)
def test_a_damaged_row_says_what_it_lacks(row, words):
    with pytest.raises(DamagedError) as caught:
        list(row_steps("step,step_time_s", row))
    assert words in caught.value.words
