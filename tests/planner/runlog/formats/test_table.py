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
        ("Wall time,Step,Value", True),
        ("_step,iteration-time", True),
        ("Step,run - train/loss,run - train/loss__MIN", False),
        ("epoch,loss", False),
        ('{"loss": 5}', False),
        ("{", False),
        ("", False),
        ("[1]", False),
    ],
)
def test_a_table_is_told_by_its_columns(first, table):
    assert is_table(first) is table


def test_a_spreadsheet_may_have_tabs_or_semicolons_with_decimal_commas():
    semicolons = list(row_steps("step;step_time_s;tps", "7;2,034;1234,5"))
    thousands = list(row_steps("step;step_time_ms;tps", "1.000;2.500;1.234,5"))
    (tabs,) = row_steps("step\tstep_time_s\tnote", "7\t2.034\t")

    assert is_table("step;step_time_s;tps")
    assert is_table("step\tstep_time_s\tnote")
    assert [(step.number, step.duration_s, step.tokens_per_s_per_gpu) for step in semicolons] == [(7, 2.034, 1234.5)]
    assert [(step.number, step.duration_s, step.tokens_per_s_per_gpu) for step in thousands] == [(1000, 2.5, 1234.5)]
    assert (tabs.number, tabs.duration_s) == (7, 2.034)
    with pytest.raises(DamagedError, match="2,034"):  # two seconds or two thousand
        list(row_steps("step\tstep_time_s", "7\t2,034"))


@pytest.mark.parametrize(("separator", "number"), [(";", "1.000"), ("\t", "12.000"), (",", "step 3"), (",", '"1,00"')])
def test_the_number_of_a_step_that_may_be_another_is_refused(separator, number):
    with pytest.raises(DamagedError, match="a whole number without separators"):
        list(row_steps(f"step{separator}step_time_s", f"{number}{separator}2"))


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


def test_the_steps_of_a_trainer_are_not_its_calls_of_wandb():
    trainer = "_step,_timestamp,train/global_step,train/loss"
    lightning = '{"_step": 4, "_timestamp": 1772323200.5, "trainer/global_step": 199}'

    assert [step.number for step in row_steps(trainer, "3,1772323200.5,40,1.9")] == [40]
    assert [step.number for step in row_steps(trainer, "4,1772323201.5,,")] == [None]  # a call without a step
    assert [step.number for step in row_steps(lightning, lightning)] == [199]


@pytest.mark.parametrize(
    ("first", "row", "seconds"),
    [("_step,iteration-time", "5,2.5", 2.5), ("_step,time_per_iteration_ms", "5,1020.5", 1.0205),
     ("global_step,train_step_timing in s", "5,7.5", 7.5)],
)  # fmt: skip
def test_step_times_of_frameworks_in_wandb_have_their_unit(first, row, seconds):
    (step,) = row_steps(first, row)

    assert (step.number, step.duration_s) == (5, pytest.approx(seconds))


def test_a_scalar_of_tensorboard_has_the_time_of_each_step():
    (step,) = row_steps("Wall time,Step,Value", "1772323200.5,40,1.9")

    assert step.number == 40
    assert step.end is not None
    assert step.end.seconds == 1772323200.5
