"""What the price commands say of many lines."""

from __future__ import annotations

from mpplan.commands.catalogues.price_output import first_of


def test_the_first_lines_are_kept_and_the_others_counted():
    assert first_of(["a", "b"]) == ["a", "b"]
    assert first_of(["a", "b", "c"], most=2) == ["a", "b", "and 1 more"]
    assert first_of(iter("ab"), 2_000_000, most=2) == ["a", "b", "and 1999998 more"]
