"""Entries of an answer become rows: the cheapest zone is kept, and what is no entry is said."""

from __future__ import annotations

import pytest

from pricing.sources.base import Fetched, cheapest, parse_answer, read_entries
from pricing.sources.web import FetchError


def test_the_cheapest_of_several_zones_is_kept(row):
    rows = [row("3", id="a", region="x"), row("2", id="b", region="X"), row("9", id="c", region="y")]

    assert [kept.id for kept in cheapest(rows)] == ["b", "c"]


def test_entries_without_a_row_are_counted_by_a_short_reason(row):
    read = read_entries("acme", [1, 2, 3], lambda entry: row() if entry == 1 else "because " + "x" * 1000)

    assert len(read.rows) == 1
    assert read.skipped == {"because " + "x" * 71 + "…": 2}


@pytest.mark.parametrize("text", ["", "[" * 100_000, '{"a": 1e999999999999999999999}', "9" * 5000])
def test_an_answer_that_is_no_json_value_is_said(text):
    with pytest.raises(FetchError, match="acme: an answer that cannot be read"):
        parse_answer(Fetched(source="acme", text=text))
