"""The forecast holds the truth as often as it says, and says what it lacks."""

from __future__ import annotations

import pytest

from planner.comparison.basis import Given
from planner.units import DAY_S, HOUR_S
from tests.planner.comparison.runs import compared, log_of, simulate
from tests.planner.runlog.test_read import sample
from tests.planner.runlog.writers import megatron_log

SEEDS = range(1000, 1200)
"""None of those by which the method was chosen."""


def inside(seed: int, **how: float) -> bool:
    run = simulate(seed, **how)  # type: ignore[arg-type]
    ahead = compared(run.log).forecast
    assert ahead is not None
    return ahead.days.low * DAY_S <= run.rest_s <= ahead.days.high * DAY_S


def test_the_range_of_steps_with_lasting_noise_holds_the_end_nine_times_in_ten():
    held = sum(inside(seed) for seed in SEEDS)

    assert 0.84 <= held / len(SEEDS) <= 0.96  # 0.90, three standard errors of 200 seeds about it


def test_the_range_with_stops_holds_the_end_nine_times_in_ten():
    held = sum(inside(seed, stops_per_step=0.02) for seed in SEEDS)

    assert 0.84 <= held / len(SEEDS) <= 0.96


def test_a_steady_run_ends_when_its_steps_are_done():
    lines, _ = megatron_log([2.0] * 100, of=400)
    ahead = compared(log_of(lines), Given(gpus=8, price_usd_per_gpu_h=3.0, seq_len=4096)).forecast

    assert ahead is not None
    assert (ahead.remaining_steps, ahead.remaining_tokens) == (300, 300 * 128 * 4096)
    assert ahead.days.mid == pytest.approx(600 / DAY_S)
    assert ahead.days.high == pytest.approx(ahead.days.low)
    assert ahead.cost_usd is not None
    assert ahead.cost_usd.mid == pytest.approx(600 / HOUR_S * 8 * 3.0)
    assert ahead.spent_usd is not None
    assert ahead.spent_usd.mid == pytest.approx(198 / HOUR_S * 8 * 3.0)  # from the first line to the last
    assert ahead.stops_expected == 0


def test_recent_steps_count_not_those_of_long_ago():
    lines, _ = megatron_log([4.0] * 100 + [2.0] * 100, of=300)
    ahead = compared(log_of(lines)).forecast

    assert ahead is not None
    assert ahead.days.mid == pytest.approx(200 / DAY_S, rel=0.02)


def test_without_a_price_the_bill_is_unknown_and_never_zero():
    lines, _ = megatron_log([2.0] * 10, of=100)
    priced_nothing = compared(log_of(lines), Given(gpus=8)).forecast
    no_gpus = compared(log_of(lines), Given(price_usd_per_gpu_h=3.0)).forecast

    assert priced_nothing is not None
    assert priced_nothing.gpu_hours is not None
    assert (priced_nothing.cost_usd, priced_nothing.spent_usd) == (None, None)
    assert no_gpus is not None
    assert (no_gpus.gpu_hours, no_gpus.cost_usd) == (None, None)


def test_a_run_that_ended_before_its_last_step_has_nothing_left():
    lines, _ = megatron_log([2.0] * 10, of=100)
    stopped = compared(log_of(lines, ["[after training is done] datetime: 2026-03-01 00:00:25"]))

    assert (stopped.last_step, stopped.remaining_steps) == (10, 0)
    assert stopped.forecast is not None
    assert (stopped.forecast.days.high, stopped.forecast.remaining_steps) == (0.0, 0)


def test_a_trainer_state_at_its_end_has_nothing_left_though_it_has_no_time():
    ahead = compared(sample("trainer_state.json"), Given(gpus=8, price_usd_per_gpu_h=3.0)).forecast

    assert ahead is not None
    assert (ahead.remaining_steps, ahead.days.high) == (0, 0.0)
    assert (ahead.spent_days, ahead.spent_usd) == (None, None)


def test_at_the_end_nothing_is_left_and_one_line_gives_no_range():
    done = compared(log_of(megatron_log([2.0] * 10, of=10)[0])).forecast
    alone = compared(log_of(megatron_log([2.0], of=11)[0])).forecast

    assert done is not None
    assert alone is not None
    assert (done.remaining_steps, done.days.high) == (0, 0.0)
    assert alone.days.low == alone.days.high == pytest.approx(20 / DAY_S)
