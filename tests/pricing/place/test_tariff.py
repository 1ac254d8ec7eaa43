"""Time-of-use prices: every hour of the week once, a mean for a run, and when to start."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.errors import InputFileError
from pricing.place.tariff import WEEK_HOURS, Tariff, best_start, mean_usd_per_kwh, read_tariff

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
        (NIGHTS.replace('"weekend"', '"sundays"'), "days: expected one of all, weekdays, weekend"),
    ],
)
def test_a_tariff_with_holes_or_overlaps_is_refused(tariff, text, problem):
    with pytest.raises(InputFileError) as caught:
        tariff(text)

    assert problem in caught.value.message
