"""torchtune's files of metrics and its progress bars."""

from __future__ import annotations

import numpy as np
import pytest

from tests.planner.runlog.reading import read
from tests.planner.runlog.recipe_writers import torchtune_bar, torchtune_line
from tests.planner.runlog.writers import text_of


def bars(epoch: int, before: int, numbers: range, of: int, *, lines: bool = False) -> str:
    """States of the bar of an epoch, which begins with the first number, at two seconds a step."""
    states = [torchtune_bar(epoch, before + number, number, of, 2 * (number - numbers[0])) for number in numbers]
    metrics = [torchtune_line(before + number) + "\n" if lines and number else "" for number in numbers]
    return "".join(f"\r{state}{metric}" for state, metric in zip(states, metrics, strict=True))


def test_a_file_of_metrics_has_steps_and_memory_and_neither_time_nor_rate():
    log = read(text_of(torchtune_line(step) for step in range(1, 20)), "log_1764288000.txt")

    assert (log.framework, log.durations_from, log.reached) == ("torchtune", "", 19)
    assert (log.facts["peak_mem_gib"], log.facts["mem_kind"]) == (18.0625, "allocated")
    assert np.all(np.isnan(log.steps.tokens_per_s_per_gpu))


@pytest.mark.parametrize("lines", [True, False])
def test_the_bar_of_the_console_times_the_steps_of_all_epochs(lines):
    log = read((bars(1, 0, range(41), 40, lines=lines) + bars(2, 40, range(41), 40, lines=lines)).encode())

    assert (log.framework, log.durations_from, log.reached, log.attempts) == ("torchtune", "bar", 80, 1)
    assert np.nanmedian(log.steps.duration_s) == pytest.approx(2.0)


def test_a_resumed_run_goes_on_from_its_checkpoint():
    first = bars(1, 0, range(41), 40) + bars(2, 40, range(41), 40) + bars(3, 80, range(21), 40)
    log = read(f"{first}\n{bars(2, 40, range(10, 41), 40)}{bars(3, 80, range(41), 40)}".encode())

    assert (log.attempts, log.reached) == (2, 120)
    assert log.steps.number[log.steps.attempt == 1][0] == 50
    assert np.nanmedian(log.steps.duration_s) == pytest.approx(2.0)


def test_bars_of_ranks_that_are_a_step_apart_are_no_restarts():
    states = [torchtune_bar(1, max(step - rank % 2, 0), max(step - rank % 2, 0), 40, 2 * step)
              for step in range(41) for rank in range(4)]  # fmt: skip
    log = read("\r".join(states).encode())

    assert (log.attempts, log.reached) == (1, 40)
    assert np.nanmedian(log.steps.duration_s) == pytest.approx(2.0)


def test_evaluations_are_no_steps():
    lines = [torchtune_line(1), "Step 1 | val_loss:1.5 ", "Saving checkpoint took 12.50 secs", torchtune_line(2)]
    log = read(text_of(lines))

    assert log.steps.number.tolist() == [1, 2]
    assert [(mark.kind, mark.duration_s) for mark in log.marks] == [("evaluation", None), ("checkpoint", 12.5)]
