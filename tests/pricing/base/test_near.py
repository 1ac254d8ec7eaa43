"""Names in messages."""

from __future__ import annotations

from pricing.base.near import listed, near_names


def test_near_names_come_best_first_whatever_their_case():
    assert near_names("AWZ", ["azure", "aws", "gcp"])[0] == "aws"
    assert near_names("zzzz", ["azure", "aws"]) == ()


def test_long_lists_are_cut_and_counted():
    assert listed(["a", "b"]) == "a, b"
    assert listed([str(at) for at in range(20)], 3) == "0, 1, 2 and 17 more"
