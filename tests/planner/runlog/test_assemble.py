"""From lines to one run: whose steps count, restarts, and the time of steps by clock, bar and print."""

from __future__ import annotations

import io
from datetime import timedelta

import numpy as np
import pytest

from planner.runlog.assemble import restarts
from planner.runlog.read import read_log
from tests.planner.runlog.test_read import read
from tests.planner.runlog.writers import BEGIN, megatron_log, text_of, titan, titan_step


def bar(number: int, of: int, seconds: int) -> str:
    return f"\r{100 * number // of:3d}%|##   | {number}/{of} [{seconds // 60:02d}:{seconds % 60:02d}<00:30,  2.00s/it]"


def test_the_first_line_of_a_start_covers_an_ordinary_interval_and_no_more_than_its_number():
    lines, _ = megatron_log([2.0] * 5, of=100, interval_steps=10)

    assert read(text_of(lines)).steps.count.tolist() == [10.0] * 5
    assert read(text_of(lines[2:])).steps.count.tolist() == [10.0] * 3  # a log that begins in the middle


def test_a_start_anew_is_where_numbers_go_back():
    before, at = megatron_log([2.0] * 6, of=100)
    after, _ = megatron_log([2.0] * 6, of=100, begin=3, at=at)
    log = read(text_of(before, after))

    assert (log.attempts, restarts(log.steps)) == (2, [6])


def test_a_rank_that_reports_its_start_late_is_no_start_anew():
    lines = [titan(BEGIN, "Training starts at step 1", rank=0), titan_step(BEGIN, 1, tps=1, tflops=1, mfu=1)]
    lines.append(titan(BEGIN, "Training starts at step 1", rank=5))
    lines += [titan_step(BEGIN + timedelta(seconds=n), n, tps=1, tflops=1, mfu=1) for n in (10, 20)]

    assert read(text_of(lines)).attempts == 1


def test_a_rank_that_is_late_by_a_step_is_no_restart():
    steps = [10] * 4 + [20] * 3 + [30] * 2 + [20] + [30] * 2 + [40] * 4 + [50] * 4  # four ranks without a prefix
    seconds = [10] * 4 + [20] * 3 + [30] * 2 + [31] + [31] * 2 + [40] * 4 + [50] * 4
    lines = [titan_step(BEGIN + timedelta(seconds=at), step, tps=1, tflops=1, mfu=1, rank=None)
             for step, at in zip(steps, seconds, strict=True)]  # fmt: skip
    log = read(text_of(lines))

    assert (log.steps.number.tolist(), log.attempts) == ([10, 20, 30, 40, 50], 1)
    assert log.steps.duration_s[1:].tolist() == [1.0] * 4


def titan_log(begin: int, rank: int | None) -> list[str]:
    """Steps of a job of torchtitan, one each two seconds, after `begin` steps."""
    first = titan(BEGIN + timedelta(seconds=2 * begin), f"Training starts at step {begin + 1}", rank)
    return [first] + [titan_step(BEGIN + timedelta(seconds=2 * step), step, tps=1, tflops=1, mfu=1, rank=rank)
                      for step in range(begin + 10, begin + 101, 10)]  # fmt: skip


def test_a_run_that_was_made_longer_has_not_ended():
    end = titan(BEGIN + timedelta(seconds=200), "Training completed")

    assert read(text_of(titan_log(0, None), [end])).ended
    assert not read(text_of(titan_log(0, None), [end], titan_log(100, None))).ended
    assert read(text_of(titan_log(0, None), [end], titan_log(100, None), [end])).ended


def test_files_of_ranks_one_after_another_are_no_restart():
    log = read(text_of(titan_log(0, None), titan_log(0, None)))

    assert (log.attempts, log.reached, len(log.steps), log.notes) == (1, 100, 10, ("interleaved",))
    assert log.steps.duration_s[1:].tolist() == [2.0] * 9


def test_files_of_jobs_in_another_order_are_one_run_in_order():
    log = read(text_of(titan_log(100, None), titan_log(0, None)))

    assert (log.attempts, log.reached, restarts(log.steps)) == (2, 200, [10])
    assert log.steps.number.tolist() == list(range(10, 201, 10))


def test_a_table_of_one_metric_after_another_counts_each_step_once():
    rows = [
        f"{metric},{1772323200000 + 2000 * step},{step}" for metric in ("loss", "lr") for step in range(10, 101, 10)
    ]
    log = read(text_of(["key,timestamp,step"], rows))

    assert (log.attempts, len(log.steps)) == (1, 10)


def test_bars_give_the_time_of_steps_over_ten_seconds_or_more():
    log = read_log(io.BytesIO("".join(bar(n, 100, 2 * n) for n in range(51)).encode()), "bar.log")

    assert (log.last_step, log.reached, log.durations_from) == (100, 50, "bar")
    assert log.steps.duration_s[1:] == pytest.approx(2.0)
    assert float(np.sum(log.steps.count)) == 50


def test_the_bar_of_an_evaluation_is_none_of_training():
    pieces = [bar(n, 100, 2 * n) for n in range(21)] + [bar(n, 8, n) for n in range(9)]
    pieces += [bar(n, 100, 2 * n + 8) for n in range(21, 41)]
    log = read_log(io.BytesIO("".join(pieces).encode()), "bar.log")

    assert (log.reached, log.attempts) == (40, 1)


def test_the_bar_of_a_resumed_run_does_not_count_the_steps_of_an_earlier_log():
    resumed = read("".join([bar(0, 1000, 0), *(bar(n, 1000, 4 + 2 * (n - 500)) for n in range(501, 601))]).encode())
    slow_start = read("".join([bar(0, 1000, 0), *(bar(n, 1000, 30 + 2 * n) for n in range(1, 101))]).encode())

    assert (resumed.reached, float(np.sum(resumed.steps.count))) == (600, 99)
    assert resumed.steps.duration_s[1:] == pytest.approx(2.0)
    assert float(np.sum(slow_start.steps.count)) == 100


def test_a_bar_that_goes_on_after_a_stop_keeps_the_last_step_before_it():
    first = "".join(bar(n, 100, 2 * n) for n in range(41))
    log = read((first + bar(0, 100, 0) + "".join(bar(40 + n, 100, 2 * n) for n in range(1, 31))).encode())

    assert (log.reached, log.attempts) == (70, 2)
    assert log.steps.number[log.steps.attempt == 0][-1] == 40


def test_steps_without_a_time_have_none():
    assert np.all(np.isnan(read(b"step,timestamp\n1,2026-01-01T00:00:00\n").steps.duration_s))
