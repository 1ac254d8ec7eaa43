"""Evidence and estimates: the one definition of a range, and gaps as messages."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.errors import Message
from planner.evidence import Estimate, Gap, distinct_gaps, median, middle


@given(st.lists(st.floats(0, 1e12), min_size=1, max_size=300))
def test_low_mid_and_high_are_ordered_and_lie_within_the_draws(values):
    estimate = Estimate.of_draws(values)

    assert min(values) <= estimate.low <= estimate.mid <= estimate.high <= max(values)


def test_of_a_thousand_and_one_draws_the_ends_are_the_51st_and_951st():
    drawn = Estimate.of_draws(np.arange(1001.0)[::-1])

    assert (drawn.low, drawn.high) == (50, 950)
    assert drawn.mid == 500  # one of them is 0: the median


def test_the_middle_is_the_geometric_mean_so_that_it_multiplies():
    hours, price = np.array([1.0, 10.0, 100.0]), np.array([4.0, 1.0, 2.0])

    assert middle(hours) == pytest.approx(10.0)
    assert middle(hours * price) == pytest.approx(10.0 * middle(price)) == pytest.approx(20.0)
    assert middle(1.0 / hours) == pytest.approx(0.1)


@pytest.mark.parametrize(("draws", "expected"), [([-1.0, 2.0, 5.0], 2.0), ([0.0, 0.0, 3.0], 0.0)])
def test_of_draws_that_are_not_all_above_zero_the_middle_is_the_median(draws, expected):
    assert middle(draws) == expected


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=9))
def test_the_median_is_that_of_numpy(values):
    assert median(np.array(values)) == np.median(values)


def test_between_two_draws_they_are_interpolated():
    # Hyndman and Fan 1996, type 7: position 1 + (n - 1) p of the ordered draws
    estimate = Estimate.of_draws([1.0, 2.0, 3.0, 4.0])

    assert (estimate.low, estimate.high) == pytest.approx((1.15, 3.85))
    assert estimate.mid == pytest.approx(24 ** (1 / 4))


def test_a_figure_without_draws_has_no_range():
    assert Estimate.of_draws(3.0, at_least=True) == Estimate(low=3.0, mid=3.0, high=3.0, at_least=True)


def test_a_range_out_of_order_is_refused():
    with pytest.raises(ValueError, match="not ordered"):
        Estimate(low=2.0, mid=1.0, high=3.0)


def test_the_three_sentences_of_a_gap_share_its_values():
    gap = Gap.of("price.stale", as_of="2026-11-20", rows="p001")

    assert gap.what == Message.of("gap.price.stale.what", as_of="2026-11-20", rows="p001")
    assert {gap.why.key, gap.effect.key} == {"gap.price.stale.why", "gap.price.stale.effect"}
    assert gap.what.values == gap.why.values == gap.effect.values


def test_gaps_of_several_gpus_that_differ_only_in_their_rows_are_one_with_each_row_once():
    def of_dates(*rows: object) -> Message:
        return Message.of("price.of_dates", rows=tuple(rows))

    aws, nebius, more = (
        "aws (2026-08-28)",
        "nebius (2026-08-28)",
        Message.of("price.of_more_dates", rows=("x",), more=3),
    )
    first = Gap.of("price.stale", as_of="2026-11-28", rows=of_dates(nebius, aws))
    second = Gap.of("price.stale", as_of="2026-11-28", rows=of_dates(of_dates(aws), "EUR (2026-01-02)", more))
    other, place = Gap.of("price.stale", as_of="2026-11-27", rows=of_dates(aws)), Gap.of("place.grid", region="x")

    assert distinct_gaps([first, place, second, first, other]) == (
        Gap.of("price.stale", as_of="2026-11-28", rows=(nebius, aws, "EUR (2026-01-02)", more)), place, other,
    )  # fmt: skip
    assert distinct_gaps([first, first]) == (first,)
