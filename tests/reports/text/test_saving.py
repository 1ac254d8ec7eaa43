from __future__ import annotations

import pytest

from reports.text.language import words_for
from reports.text.saving import shown_saving

WORDS = words_for("en")


def shown(low: float, mid: float, high: float):
    return shown_saving({"low": low, "mid": mid, "high": high}, WORDS)


def test_an_extra_is_told_by_its_size_with_the_range_turned():
    saving = shown(-0.30, -0.12, -0.05)

    assert (saving.less, saving.unsure) == (False, False)
    assert (saving.figure.text, saving.figure.span) == ("12%", "5–30")


@pytest.mark.parametrize(
    ("ends", "unsure", "hedged"),
    [((0.1, 0.2, 0.3), False, False), ((-0.1, 0.2, 0.3), True, True), ((-0.1, 0.049, 0.3), True, False)],
)
def test_only_a_saving_that_may_be_none_is_hedged_and_only_where_its_middle_is_not_small(ends, unsure, hedged):
    assert (shown(*ends).unsure, shown(*ends).hedged) == (unsure, hedged)


def test_a_saving_that_reads_as_zero_is_none_only_without_a_range():
    assert shown(0.0, 0.0, 0.0).is_none
    assert not shown(-0.2, 0.001, 0.2).is_none
    assert shown(-0.2, 0.001, 0.2).rounds_to_none


@pytest.mark.parametrize(
    ("ends", "less", "at_most"),
    [
        ((0.0, 0.0, 0.366), True, "37%"),
        ((-0.42, 0.0, 0.0), False, "42%"),
        ((-1e-9, 1e-8, 0.3), True, "30%"),  # a cent of rounding
        ((0.0, 0.0, 0.004), True, ""),
        ((0.0, 0.002, 0.3), True, ""),
        ((-0.1, 0.0, 0.3), True, ""),
    ],
)
def test_a_saving_that_only_one_end_of_the_range_shows_is_told_by_that_end(ends, less, at_most):
    """As under an offer whose minimum term is longer than both runs take in the middle."""
    saving = shown(*ends)

    assert (saving.less, saving.at_most) == (less, at_most)
    assert not (at_most and (saving.unsure or saving.hedged or saving.is_none))
