from __future__ import annotations

from reports.text.width import columns_of


def test_a_wide_character_takes_two_columns():
    assert columns_of("显存 80") == 7
