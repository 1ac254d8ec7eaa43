"""Claims in words."""

from __future__ import annotations

from dataclasses import replace

from planner.claims.case import Case, left_out
from planner.claims.claim import load_claims
from planner.claims.standing import STANDINGS
from planner.claims.verdict import VERDICTS, judge
from planner.errors import Message
from reports.text.claims import counts, ends, source_of, stands_words, verdict_words
from reports.text.language import words_for

CLAIM = load_claims()["c06"]
CASE = Case(what="V100", basis="planner", source="mpplan estimate --gpu t4", low=1.0, mid=2.0, high=4.0)


def test_every_verdict_and_every_standing_has_words_of_its_own_in_both_languages():
    for lang in ("en", "zh"):
        words = words_for(lang)
        verdicts = {words.name("verdict", name) for name in VERDICTS}
        standings = {words.name("stands", name) for name in STANDINGS}
        assert (len(verdicts), len(standings)) == (4, 6)
        assert lang == "en" or not any(text.isascii() for text in verdicts | standings)
    assert verdict_words("cannot_be_judged") == "cannot be judged here"


def test_a_case_stands_in_words():
    assert stands_words(CLAIM, CASE) == "yes"
    assert stands_words(CLAIM, replace(CASE, mid=3.9)) == "too wide"
    assert stands_words(CLAIM, replace(CASE, low=3.9, mid=3.9)) == "no"


def test_ends_are_given_where_they_differ():
    assert ends(CLAIM, CASE) == ("1×", "2×", "4×")
    assert ends(CLAIM, replace(CASE, low=2.0, high=2.0)) == ("", "2×", "")
    assert ends(CLAIM, replace(CASE, low=None, mid=None, high=None)) == ("", "", "")


def test_a_command_is_code_and_what_was_left_out_says_why():
    why = Message.of("claim.why.does_not_fit", what="FP16")

    assert source_of(CASE) == "`mpplan estimate --gpu t4`"
    assert source_of(left_out("FP16", basis="planner", source="a file", why=why)) == (
        "FP16 does not fit in memory. a file"
    )


def test_verdicts_are_counted():
    assert dict(counts([judge(CLAIM, [CASE])]))["holds"] == 1
