"""Where the wall time went: planted restarts, checkpoints, evaluations and slow steps are named as such."""

from __future__ import annotations

from datetime import timedelta

import pytest

from planner.comparison.compare import Comparison
from planner.comparison.findings import findings
from tests.planner.comparison.runs import compared, log_of
from tests.planner.runlog.test_read import sample
from tests.planner.runlog.writers import BEGIN, megatron_line, megatron_log, titan, titan_step


def kinds(comparison: Comparison) -> dict[str, tuple[int, float]]:
    return {spent.kind: (spent.count, spent.seconds) for spent in comparison.use.spent}


def test_a_planted_restart_is_a_stop_and_steps_done_again():
    before, at = megatron_log([2.0] * 100, of=1000)
    after, _ = megatron_log([2.0] * 50, of=1000, begin=80, at=at + timedelta(seconds=600))
    comparison = compared(log_of(before, ["  successfully loaded checkpoint from ckpt"], after))

    spent = kinds(comparison)
    assert spent["stops"] == (1, pytest.approx(600.0))
    assert spent["replayed"] == (20, pytest.approx(40.0))
    assert spent["steps"] == (130, pytest.approx(260.0))
    assert comparison.use.goodput_ratio == pytest.approx(260.0 / (100 * 2 + 600 + 50 * 2 - 2), rel=0.01)
    assert {"compare.replayed", "compare.restarts"} <= {message.key for message in findings(comparison)}
    assert comparison.remaining_steps == 870


def test_a_restart_that_repeats_no_step_is_a_stop_though_a_checkpoint_was_saved():
    start = "[before the start of training step] datetime: 2026-03-01 00:00:00 "
    saved = "  successfully saved checkpoint from iteration     100 to ckpt"
    before, at = megatron_log([2.0] * 10, of=1000, interval_steps=10)
    first = megatron_line(101, 1000, 5.0, at + timedelta(seconds=605))  # printed in addition to each tenth
    after, _ = megatron_log([2.0] * 9, of=1000, interval_steps=10, begin=110, at=at + timedelta(seconds=623))
    comparison = compared(log_of([start], before, [saved, start, first], after))

    spent = kinds(comparison)
    assert comparison.log.attempts == 2
    assert spent["stops"] == (1, pytest.approx(600.0))
    assert not {"checkpoint", "replayed", "other"} & set(spent)
    assert spent["steps"][0] == 200


def test_the_first_iteration_after_a_restart_is_one_step_where_the_log_gives_its_checkpoint():
    loaded = "  successfully loaded checkpoint from ckpt [ t 1/1, p 1/1 ] at iteration 80"
    before, at = megatron_log([2.0] * 10, of=1000, interval_steps=10)
    first = megatron_line(81, 1000, 30.0, at + timedelta(seconds=630))
    after, _ = megatron_log([2.0] * 9, of=1000, interval_steps=10, begin=90, at=at + timedelta(seconds=648))
    comparison = compared(log_of(before, [loaded, first], after))

    spent = kinds(comparison)
    assert spent["replayed"] == (20, pytest.approx(30.0 + 19 * 2.0))
    assert spent["stops"] == (1, pytest.approx(600.0))


def test_a_chain_of_torchtitans_jobs_is_stopped_between_them():
    at, lines = BEGIN, []
    for begin in (0, 200):
        lines.append(titan(at, f"Training starts at step {begin + 1}"))
        for step in range(begin + 10, begin + 201, 10):
            at += timedelta(seconds=20)
            lines.append(titan_step(at, step, tps=1000, tflops=10, mfu=1))
        lines.append(titan(at, "Saving the checkpoint (or staging if async is enabled)."))
        at += timedelta(seconds=900)
    comparison = compared(log_of(lines))

    assert comparison.log.attempts == 2
    assert kinds(comparison)["stops"] == (1, pytest.approx(900.0))
    assert "checkpoint" not in kinds(comparison)


def test_pauses_with_a_checkpoint_or_an_evaluation_are_theirs():
    first, at = megatron_log([2.0] * 20, of=100)
    second, at = megatron_log([2.0] * 20, of=100, begin=20, at=at + timedelta(seconds=30))
    third, at = megatron_log([2.0] * 20, of=100, begin=40, at=at + timedelta(seconds=50))
    fourth, _ = megatron_log([2.0] * 20, of=100, begin=60, at=at + timedelta(seconds=70))
    saved = ["saving checkpoint at iteration 20 to x", "  successfully saved checkpoint from iteration 20 to x"]
    spent = kinds(compared(log_of(first, saved, second, [" validation loss at iteration 40 |"], third, fourth)))

    assert spent["checkpoint"] == (1, pytest.approx(30.0))
    assert spent["evaluation"] == (1, pytest.approx(50.0))
    assert spent["other"] == (1, pytest.approx(70.0))


def test_each_of_several_validation_sets_is_an_evaluation():
    first, at = megatron_log([2.0] * 20, of=100)
    second, _ = megatron_log([2.0] * 20, of=100, begin=20, at=at + timedelta(seconds=50))
    losses = [f" validation-{name} loss at iteration 20 | lm loss value: 2.1E+00 | " for name in ("0", "code")]
    spent = kinds(compared(log_of(first, losses, second)))

    assert spent["evaluation"] == (1, pytest.approx(50.0))
    assert "other" not in spent


def test_steps_with_a_smaller_batch_at_the_beginning_take_their_own_time():
    small, at = megatron_log([0.5] * 60, of=1000, batch=32)
    medium, at = megatron_log([1.0] * 40, of=1000, batch=64, begin=60, at=at)
    large, _ = megatron_log([2.0] * 99 + [7.0] + [2.0] * 20, of=1000, batch=128, begin=100, at=at)
    comparison = compared(log_of(small, medium, large))

    assert comparison.pace is not None
    assert comparison.pace.step_s.mid == 2.0
    assert comparison.pace.step_s.low == 2.0
    assert kinds(comparison) == {"steps": (220, pytest.approx(60 * 0.5 + 40 * 1.0 + 120 * 2.0)),
                                 "slow": (1, pytest.approx(5.0))}  # fmt: skip
    assert "compare.beyond.clock" not in {message.key for message in findings(comparison)}


def test_slow_steps_are_told_from_the_others():
    comparison = compared(log_of(megatron_log([2.0] * 40 + [9.0] * 2 + [2.0] * 40, of=1000)[0]))

    assert comparison.pace is not None
    assert (comparison.pace.slow_lines, comparison.pace.slow_s) == (2, pytest.approx(14.0))
    assert kinds(comparison)["slow"] == (2, pytest.approx(14.0))


def test_by_the_clock_a_checkpoint_is_what_its_line_took_beyond_the_others():
    lines, at = [], BEGIN
    for step in range(1, 61):
        at += timedelta(seconds=32.0 if step == 31 else 2.0)
        if step == 31:
            lines.append(titan(at, "Saving the checkpoint (or staging if async is enabled)."))
        lines.append(titan_step(at, step, tps=7000, tflops=400, mfu=40.0))
    comparison = compared(log_of(lines))

    assert kinds(comparison)["checkpoint"] == (1, pytest.approx(30.0))
    assert comparison.pace is not None
    assert comparison.pace.mean_s == pytest.approx(2.0)


def test_a_real_crash_has_its_steps_done_again():
    comparison = compared(sample("nemo-crash.log"))

    assert kinds(comparison)["steps"][0] == 20
    assert kinds(comparison)["replayed"] == (6, pytest.approx(48.2, abs=0.1))
    assert comparison.use.wall_s == pytest.approx(242.0)  # 22:37:11 to 22:41:13
    assert kinds(comparison)["untold"][1] > 30  # the start, the crash and the start after it


def test_times_of_a_few_warnings_are_no_wall_time():
    comparison = compared(sample("hf-trainer.log"))

    assert comparison.use.wall_s is None
    assert kinds(comparison)["evaluation"] == (2, pytest.approx(3.731 + 1.669))


def test_kinds_add_up_to_the_wall_time():
    before, at = megatron_log([2.0, 2.1, 1.9] * 30, of=1000)
    after, _ = megatron_log([2.0] * 50, of=1000, begin=80, at=at + timedelta(seconds=600))
    comparison = compared(log_of(["[before the start of training step] datetime: 2026-02-28 23:58:00 "], before, after))

    assert comparison.use.wall_s is not None
    assert sum(spent.seconds for spent in comparison.use.spent) == pytest.approx(comparison.use.wall_s, rel=0.02)


def test_steps_that_take_longer_than_the_clock_are_told_and_the_first_line_is_not():
    short = log_of(megatron_log([2.0] * 6, of=100)[0])
    lines, _ = megatron_log([2.0] * 40, of=100)
    wrong = log_of([line.replace("(ms): 2000.0", "(ms): 3000.0") for line in lines])

    keys = [{message.key for message in findings(compared(log))} for log in (short, wrong)]
    assert "compare.beyond.clock" not in keys[0]
    assert "compare.beyond.clock" in keys[1]


def test_the_hours_between_utc_and_local_time_are_no_duration():
    lines = [f"{BEGIN + timedelta(seconds=2 * n):%Y-%m-%dT%H:%M:%S}.123456789Z "
             + titan_step(BEGIN + timedelta(hours=8, seconds=2 * n), n, tps=1, tflops=1, mfu=1, rank=None)
             for n in range(1, 31)]  # fmt: skip
    comparison = compared(log_of(lines))

    assert comparison.use.wall_s == pytest.approx(58.0)
    assert set(kinds(comparison)) == {"steps"}


def test_lines_without_numbers_count_the_steps_of_the_closing_one():
    losses = ["{'loss': 2.3, 'grad_norm': 0.4, 'epoch': 0.5}"] * 3
    comparison = compared(log_of([*losses, "{'train_runtime': 100.0, 'train_steps_per_second': 0.5, 'epoch': 1}"]))

    assert kinds(comparison)["steps"] == (50, pytest.approx(100.0))
    assert (comparison.last_step, comparison.remaining_steps) == (50, 0)
    assert comparison.forecast is not None
    assert comparison.forecast.spent_days == pytest.approx(100.0 / 86400)


def test_one_line_alone_has_a_pace_and_no_wall():
    comparison = compared(log_of([megatron_line(5, 10, 2.0, BEGIN)]))

    assert comparison.use.wall_s is None
    assert kinds(comparison)["steps"] == (1, pytest.approx(2.0))


def test_the_longest_slow_step_is_none_that_warmed_up():
    comparison = compared(log_of(megatron_log([60.0] + [2.0] * 40 + [9.0] * 2 + [2.0] * 40, of=1000)[0]))

    slow = comparison.use.of("slow")
    assert slow is not None
    assert (slow.count, slow.longest_s) == (2, pytest.approx(9.0))
