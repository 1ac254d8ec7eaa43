"""The time of a step: steady lines, without the first of a start, and without the pauses that a clock holds."""

from __future__ import annotations

import pytest

from planner.comparison.pace import durations_of, pace_of
from tests.planner.comparison.runs import log_of
from tests.planner.runlog.test_read import sample
from tests.planner.runlog.writers import megatron_log


def test_the_first_line_of_each_start_warms_up():
    before, at = megatron_log([30.0, 2.0, 2.0, 2.0], of=100)
    after, _ = megatron_log([30.0, 2.0, 2.0], of=100, begin=2, at=at)
    log = log_of(before, after)
    pace = pace_of(log, durations_of(log))

    assert pace is not None
    assert (pace.step_s.mid, pace.mean_s, pace.lines) == (2.0, 2.0, 5)


def test_an_evaluation_that_the_trainer_times_is_no_part_of_a_step():
    log = sample("hf-trainer.log")
    durations = durations_of(log)

    assert ("evaluation", 3.731) in durations.pauses
    pace = pace_of(log, durations)
    assert pace is not None
    assert pace.step_s.mid == pytest.approx(0.455, abs=0.02)


def test_without_lines_the_closing_one_gives_the_mean():
    losses = ["{'loss': 2.3, 'grad_norm': 0.4, 'epoch': 0.5}"] * 3
    log = log_of([*losses, "{'train_runtime': 100.0, 'train_steps_per_second': 0.5, 'epoch': 1}"])
    pace = pace_of(log, durations_of(log))

    assert log.attempts == 1
    assert pace is not None
    assert (pace.step_s.mid, pace.steps) == (2.0, 50.0)


def test_without_any_time_there_is_no_pace():
    log = sample("trainer_state.json")

    assert pace_of(log, durations_of(log)) is None
