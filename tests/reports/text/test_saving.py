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
