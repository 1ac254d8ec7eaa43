"""Lists in messages."""

from __future__ import annotations

from pricing.base.listing import listed


def test_long_lists_are_cut_and_counted():
    assert listed(["a", "b"]) == "a, b"
    assert listed([str(at) for at in range(20)], 3) == "0, 1, 2 and 17 more"
    assert listed([]) == ""
