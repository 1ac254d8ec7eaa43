"""litgpt's lines of iterations."""

from __future__ import annotations

from datetime import timedelta

import numpy as np
import pytest

from tests.planner.runlog.reading import read
from tests.planner.runlog.recipe_writers import litgpt_line, litgpt_log
from tests.planner.runlog.writers import BEGIN, text_of

START = ["Verifying settings ...", "Total parameters: 1,100,048,384"]
END = [
    "| - Total tokens  : 12,845,056", "| - Training Time : 160.00 s", "| Memory Usage", "| - Memory Used   : 21.38 GB",
]  # fmt: skip
EVALUATION = "iter 196: val loss 2.2011, val time: 4012.50 ms"


def test_a_step_takes_the_time_of_its_iterations():
    log = read(text_of(START, litgpt_log(range(1, 101), 0.5, accumulation=4), [EVALUATION], END))

    assert (log.framework, log.durations_from, log.reached, log.ended) == ("litgpt", "printed", 100, True)
    assert log.steps.duration_s == pytest.approx(np.full(100, 2.0))
    assert [(mark.kind, mark.duration_s) for mark in log.marks][1] == ("evaluation", pytest.approx(4.0125))
    assert log.facts["params_total"] == 1_100_048_384
    assert log.facts["peak_mem_gib"] == pytest.approx(21.38e9 / 2**30)
    assert log.closing is not None
    assert (log.closing.runtime_s, log.closing.steps) == (160.0, 100.0)


def test_a_line_that_may_hold_the_work_of_unlogged_iterations_has_no_time():
    logged = litgpt_log(range(1, 50), 0.5, accumulation=4)[3::4]
    stamps = [(BEGIN + timedelta(seconds=2 * step)).isoformat() for step in range(49)]
    log = read(text_of(logged))
    stamped = read(text_of(f"{stamp}Z {line}" for stamp, line in zip(stamps, logged, strict=True)))

    assert (log.durations_from, log.reached) == ("", 49)
    assert (stamped.durations_from, np.nanmedian(stamped.steps.duration_s)) == ("clock", pytest.approx(2.0))


def test_a_log_that_begins_within_a_step_times_only_whole_steps():
    log = read(text_of(litgpt_log(range(1, 50), 0.5, accumulation=4)[5:]))

    assert log.steps.number[:2].tolist() == [2, 3]
    assert np.isnan(log.steps.duration_s[0])
    assert log.steps.duration_s[1:] == pytest.approx(np.full(47, 2.0))


def test_a_total_time_over_steps_of_which_many_may_have_no_line_gives_no_step_time():
    sparse = [litgpt_line(step, step, 0.5, ends_step=True) for step in range(100, 1001, 100)]

    assert read(text_of(sparse, END)).closing is None


def test_lines_that_are_written_twice_count_once():
    lines = litgpt_log(range(1, 50), 0.5, accumulation=4)
    for written in (
        [line for line in lines for _ in range(2)],
        [f"[rank{rank}]:{line}" for line in lines for rank in (0, 1)],
    ):
        log = read(text_of(written))
        assert log.steps.duration_s == pytest.approx(np.full(49, 2.0))


def test_a_resumed_program_did_fewer_steps_than_the_number_of_its_last():
    resumed = ["Resuming training from out/pretrain/step-00000040/lit_model.pth", "Verifying settings ..."]
    log = read(text_of(START, litgpt_log(range(1, 50), 0.5), resumed, litgpt_log(range(41, 80), 0.5), END))

    assert (log.attempts, log.reached, log.closing) == (2, 79, None)
    assert log.steps.duration_s[~np.isnan(log.steps.duration_s)] == pytest.approx(np.full(87, 0.5))
