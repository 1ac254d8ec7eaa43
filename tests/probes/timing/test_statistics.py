"""Order statistics: the median and its interval do not mind a spike."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from probes.timing.statistics import is_steady, summarise


def test_one_spike_moves_neither_the_median_nor_its_interval() -> None:
    summary = summarise([1.0] * 99 + [67.0])

    assert (summary.median_s, summary.ci_low_s, summary.ci_high_s) == (1.0, 1.0, 1.0)
    assert summary.samples == 100


def test_the_interval_of_a_hundred_samples_takes_ranks_40_and_60() -> None:
    # n/2 ∓ 1.96 · √100 / 2 = 50 ∓ 9.8: from index floor(40.2) = 40 to ceil(59.8) - 1 = 59, counted from 0
    summary = summarise([float(i + 1) for i in range(100)])

    assert (summary.ci_low_s, summary.ci_high_s) == (41.0, 60.0)


def test_few_samples_have_their_range_as_interval() -> None:
    summary = summarise([1.0, 2.0, 4.0])

    assert (summary.median_s, summary.ci_low_s, summary.ci_high_s) == (2.0, 1.0, 4.0)


def test_from_eight_samples_on_the_interval_is_narrower_than_the_range() -> None:
    seven, eight = (summarise([float(i + 1) for i in range(count)]) for count in (7, 8))

    assert (seven.ci_low_s, seven.ci_high_s) == (1.0, 7.0)
    # 8/2 ∓ 1.96 · √8 / 2 = 4 ∓ 2.77: from index floor(1.23) = 1 to ceil(6.77) - 1 = 6, counted from 0
    assert (eight.ci_low_s, eight.ci_high_s) == (2.0, 7.0)


def test_the_interval_holds_the_true_median_about_nineteen_times_in_twenty() -> None:
    rng = random.Random(0)
    inside = 0
    for _ in range(400):
        summary = summarise([rng.lognormvariate(0.0, 0.5) for _ in range(41)])
        inside += summary.ci_low_s <= 1.0 <= summary.ci_high_s  # the median of this distribution is 1

    assert inside / 400 > 0.92


@given(st.lists(st.floats(min_value=1e-6, max_value=1e3), min_size=1, max_size=60))
def test_the_median_lies_in_its_interval_and_the_interval_in_the_range(samples: list[float]) -> None:
    summary = summarise(samples)

    assert min(samples) <= summary.ci_low_s <= summary.median_s <= summary.ci_high_s <= max(samples)


@pytest.mark.parametrize(
    ("samples", "expected"),
    [([1.0] * 29, False), ([1.0] * 30, True), ([1.0] * 20 + [1.1] * 10, False), ([9.0] * 50 + [1.0] * 30, True)],
)
def test_warm_up_is_over_when_three_blocks_of_ten_agree(samples: list[float], expected: bool) -> None:
    assert is_steady(samples) is expected
