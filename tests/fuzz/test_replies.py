"""Damaged and hostile replies end in time, with the exit code of a user's mistake and a book that reads back."""

from __future__ import annotations

from itertools import islice

import pytest

from tests.fuzz.replies import KINDS, Case, cases, faults, http, read_case, run


@pytest.mark.parametrize("case", list(islice(cases(1), len(KINDS))), ids=lambda case: case.name)
def test_a_reply_of_every_kind_is_borne(case):
    assert faults(case, run(case)) == []


def test_the_same_seed_gives_the_same_cases():
    assert list(islice(cases(7), 20)) == list(islice(cases(7), 20))
    assert list(islice(cases(7), 20)) != list(islice(cases(8), 20))


def test_a_case_that_is_kept_reads_back_the_same(tmp_path, monkeypatch):
    monkeypatch.setattr("tests.fuzz.replies.CORPUS", tmp_path)
    case = Case(source="azure", reply=bytes(range(256)), then="dribble")

    assert read_case(case.keep("replies", ["because"])) == Case(
        source="azure", reply=bytes(range(256)), then="dribble", expect="because"
    )


def test_a_good_reply_adds_rows_so_that_the_damaged_ones_are_near_to_good_ones():
    page = next(case for case in islice(cases(1), 50) if case.source == "azure" and case.then == "close")

    assert run(page).code in (0, 2)
    assert run(Case(source="azure", reply=http(b"<html>"))).code == 2
