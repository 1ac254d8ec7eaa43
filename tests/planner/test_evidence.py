"""Evidence and estimates: the one definition of a range, and gaps as messages."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.errors import Message
from planner.evidence import Estimate, Gap


@given(st.lists(st.floats(0, 1e12), min_size=1, max_size=300))
def test_low_mid_and_high_are_ordered_and_lie_within_the_draws(values):
    found = Estimate.of_draws(values)

    assert min(values) <= found.low <= found.mid <= found.high <= max(values)


def test_of_a_thousand_and_one_draws_they_are_the_51st_501st_and_951st():
    found = Estimate.of_draws(np.arange(1001.0)[::-1])

    assert (found.low, found.mid, found.high) == (50, 500, 950)


def test_between_two_draws_they_are_interpolated():
    # Hyndman and Fan 1996, type 7: position 1 + (n - 1) p of the ordered draws
    found = Estimate.of_draws([1.0, 2.0, 3.0, 4.0])

    assert (found.low, found.mid, found.high) == pytest.approx((1.15, 2.5, 3.85))


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
