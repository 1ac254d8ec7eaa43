"""OLMo-core's console, whose figures are written some steps late."""

from __future__ import annotations

from datetime import timedelta

import numpy as np
import pytest

from planner.comparison.pace import durations_of, pace_of
from planner.comparison.time_use import time_use
from tests.planner.runlog.reading import read
from tests.planner.runlog.recipe_writers import olmo, olmo_figures, olmo_log
from tests.planner.runlog.writers import BEGIN, text_of


@pytest.mark.parametrize("terminal", [True, False])
@pytest.mark.parametrize("delay_steps", [0.01, 1.4])
def test_the_clock_of_lines_in_time_gives_the_step_time(terminal, delay_steps):
    log = read(text_of(olmo_log(range(1, 101), 2.0, of=1000, delay_steps=delay_steps, terminal=terminal)))

    assert (log.framework, log.durations_from, log.attempts) == ("OLMo-core", "clock", 1)
    assert (log.reached, log.last_step) == (100, 1000)
    assert log.steps.number.tolist() == list(range(1, 101))
    assert np.nanmedian(log.steps.duration_s) == pytest.approx(2.0, rel=1e-3)


def test_figures_are_those_of_one_gpu_and_of_the_step_before_them():
    log = read(text_of(olmo_log(range(1, 101), 2.0, of=1000, delay_steps=1.4)))
    known = ~np.isnan(log.steps.mfu_ratio)

    assert log.steps.number[known].tolist() == [1, *range(5, 101, 5)]
    assert log.steps.tokens_per_s_per_gpu[known].tolist() == [12345] * 21
    assert log.steps.mfu_ratio[known] == pytest.approx(np.full(21, 0.4057))
    assert log.steps.tflops_per_gpu[known] == pytest.approx(np.full(21, 401.2))
    assert log.steps.data_s[known] == pytest.approx(np.full(21, 0.0123))
    assert (log.facts["peak_mem_gib"], log.facts["mem_kind"]) == (45.68, "reserved")


@pytest.mark.parametrize("rates", [True, False])
def test_lines_that_are_written_together_are_not_timed_by_the_clock(rates):
    lines = [
        line
        for flush in range(1, 21)
        for step in range(5 * flush - 4, 5 * flush + 1)
        for line in olmo_figures(BEGIN + timedelta(seconds=10 * flush), step, 100, 2.0, tps=1000)
        if rates or "BPS" not in line
    ]
    log = read(text_of(lines))
    durations = durations_of(log)
    pace = pace_of(log, durations)

    assert log.durations_from == ("printed" if rates else "")
    assert (None if pace is None else pace.step_s.mid) == (2.0 if rates else None)
    assert time_use(log, durations, pace).of("other") is None


@pytest.mark.parametrize("every", [1, 5])
def test_a_run_that_went_on_from_its_checkpoint_has_two_starts(every):
    first = olmo_log(range(1, 64), 2.0, of=1000, every=every)
    second = olmo_log(range(51, 101), 2.0, of=1000, every=every, at=BEGIN + timedelta(seconds=230))
    at = BEGIN + timedelta(seconds=200)
    says = [olmo(at, "Will resume training from step 50, epoch 1"), olmo(at, "Training for 1,000 steps")]
    end = [olmo(BEGIN + timedelta(seconds=400), "Training complete")]
    for lines in ([first, second], [first, says, second, end]):
        log = read(text_of(*lines))
        assert (log.attempts, log.reached, log.ended) == (2, 100, len(lines) == 4)
        assert log.steps.number[log.steps.attempt == 1].tolist() == list(range(51, 101))


def test_a_figure_that_is_no_number_damages_its_line_and_nan_is_none():
    lines = olmo_log(range(1, 101), 2.0, of=1000)
    log = read(text_of(lines, ["    throughput/device/TPS=12.345,0", "    throughput/device/MFU=nan"]))

    assert log.damaged == (len(lines) + 1,)
