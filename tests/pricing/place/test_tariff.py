"""Time-of-use prices: every hour of the week once, a mean for a run, and when to start."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.errors import InputFileError
from pricing.place.tariff import (
    WEEK_HOURS,
    Tariff,
    best_start,
    hour_named,
    mean_usd_per_kwh,
    read_tariff,
    tariff_fact,
)

NIGHTS = """
name = "nights"
[[period]]
from = 22
to = 6
usd_per_kwh = 0.05
[[period]]
from = 6
to = 22
days = "weekdays"
usd_per_kwh = 0.20
[[period]]
from = 6
to = 22
days = "weekend"
usd_per_kwh = 0.10
"""


@pytest.fixture
def tariff(tmp_path):
    def read(text):
        path = tmp_path / "tariff.toml"
        path.write_text(text, encoding="utf-8")
        return read_tariff(path)

    return read


def test_every_hour_of_the_week_has_its_price(tariff):
    prices = tariff(NIGHTS).usd_per_kwh

    assert prices.shape == (168,)
    assert (prices[5], prices[6], prices[21], prices[22]) == (0.05, 0.20, 0.20, 0.05)
    assert prices[5 * 24 + 12] == 0.10  # Saturday noon


def test_whole_weeks_pay_the_mean_whenever_they_start(tariff):
    fact = tariff(NIGHTS)

    assert mean_usd_per_kwh(fact, 336.0, 17) == pytest.approx(fact.usd_per_kwh.mean())


def test_a_part_of_an_hour_counts_as_such(tariff):
    # 21:00 for an hour and a half: one hour at 0.20, half an hour at 0.05
    assert mean_usd_per_kwh(tariff(NIGHTS), 1.5, 21) == pytest.approx((0.20 + 0.025) / 1.5)


def test_an_eight_hour_run_is_cheapest_at_ten_in_the_evening(tariff):
    cheapest, dearest = best_start(tariff(NIGHTS), 8.0)

    assert (cheapest.hour_of_week, cheapest.usd_per_kwh) == (22, pytest.approx(0.05))
    assert dearest.usd_per_kwh == pytest.approx(0.20)


@given(st.integers(1, 2000), st.integers(0, 167), st.integers(0, 2**31))
def test_the_mean_is_that_of_the_hours_run(hours, start, seed):
    prices = np.random.default_rng(seed).uniform(0.02, 0.3, WEEK_HOURS)

    expected = prices[(start + np.arange(hours)) % WEEK_HOURS].mean()
    assert mean_usd_per_kwh(Tariff(usd_per_kwh=prices, name="x"), float(hours), start) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("name = 'x'\n", "period: expected [[period]] tables"),
        (NIGHTS.replace("to = 6", "to = 5"), "period: no price for Monday 5:00"),
        (NIGHTS.replace("to = 6", "to = 7", 1), "covers Monday 6:00 a second time"),
        (NIGHTS.replace("0.05", "5"), "usd_per_kwh: expected a number from 0 to 2"),
        (NIGHTS.replace("to = 6", "to = 6.5", 1), "to: expected a whole number from 0 to 24, found `6.5`"),
        (NIGHTS.replace('"weekend"', '"sundays"'), "days: expected one of all, weekdays, weekend"),
    ],
)
def test_a_tariff_with_holes_or_overlaps_is_refused(tariff, text, problem):
    with pytest.raises(InputFileError) as caught:
        tariff(text)

    assert problem in caught.value.message


@pytest.mark.parametrize(("first", "last"), [(0, 24), (0, 0), (7, 7)])
def test_a_period_that_ends_when_it_begins_is_the_whole_day(tariff, first, last):
    prices = tariff(f"[[period]]\nfrom = {first}\nto = {last}\nusd_per_kwh = 0.11\n").usd_per_kwh

    assert prices.tolist() == [0.11] * 168


def test_the_price_of_a_tariff_is_the_mean_of_the_week_and_its_range_that_of_the_starts(tariff):
    # 8 night hours a day at 0.05; 16 at 0.20 on five days and at 0.10 on two: 56, 80 and 32 of 168 hours
    mean = (56 * 0.05 + 80 * 0.20 + 32 * 0.10) / 168
    whole, hour = (tariff_fact(tariff(NIGHTS), "nights.toml", wall_h).estimate for wall_h in (None, 1.0))

    assert (whole.low, whole.mid, whole.high) == pytest.approx((mean, mean, mean))
    # a run of one hour pays 0.05 in a third of all hours, and 0.20 in nearly half
    assert (hour.low, hour.mid, hour.high) == pytest.approx((0.05, mean, 0.20))


def test_a_week_runs_from_monday_midnight():
    names = [hour_named(hour) for hour in (0, 23, 24, 167)]

    assert names == ["Monday 0:00", "Monday 23:00", "Tuesday 0:00", "Sunday 23:00"]
