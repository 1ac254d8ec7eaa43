"""The one rule from cases to a verdict."""

from __future__ import annotations

from dataclasses import replace

import pytest

from planner.claims.case import Case, left_out, looked_at
from planner.claims.claim import load_claims
from planner.claims.verdict import judge
from planner.errors import Message
from reports.text.messages import word

SPAN = replace(load_claims()["c06"], low=2.0, high=8.0, tolerance_ratio=0.0)
UP_TO = replace(load_claims()["c23"], low=1.0, high=6.0, tolerance_ratio=0.1)
AT_LEAST = replace(load_claims()["c14"], low=0.4, high=None, tolerance_ratio=0.0, unit="fraction_saved")
WHY = Message.of("claim.why.accuracy")


def case(value: float, what: str = "V100", basis: str = "published", **more: object) -> Case:
    return Case.exactly(value, what=what, basis=basis, source="somewhere", **more)


@pytest.mark.parametrize(
    ("values", "verdict"),
    [
        ([2.0, 8.0], "holds"),
        ([1.9, 6.5], "holds_under_conditions"),
        ([1.0, 9.0], "does_not_hold"),
        ([], "cannot_be_judged"),
    ],
)
def test_a_span_holds_where_all_cases_lie_in_it(values, verdict):
    cases = [case(value) for value in values] or [looked_at("V100", basis="published", source="a file", why=WHY)]

    assert judge(SPAN, cases).verdict == verdict


def test_the_conditions_are_those_of_the_cases_that_agree():
    judged = judge(SPAN, [case(6.5, "Volta"), case(1.9, "Ampere")])

    assert word(judged.words) == "It holds for Volta: 6.5×. It does not hold for Ampere: 1.9×."


def test_a_claim_that_no_case_bears_out_is_told_beside_its_figure_and_on_which_side_they_lie():
    saved = replace(SPAN, low=0.39, high=0.39, unit="fraction_saved")

    def said(claim, *values):
        return word(judge(claim, [case(value, f"{value}") for value in values]).words)

    assert said(saved, 0.46, 0.79) == "Claimed: 39%. The saving is larger, 46% to 79%: 0.46: 46%; 0.79: 79%."
    assert said(saved, 0.1).startswith("Claimed: 39%. The saving is smaller, 10%: ")
    assert said(SPAN, 9.0, 12.0).startswith("Claimed: 2× to 8×. The cases are larger, 9× to 12×: ")
    assert said(SPAN, 1.0, 9.0).startswith("Claimed: 2× to 8×. No case agrees; they give 1× to 9×: ")
    assert said(AT_LEAST, 0.1).startswith("No case agrees; ")  # a bound is in the claim's own words
    assert said(SPAN, 1.0) == "Claimed: 2× to 8×. The cases are smaller, 1×: 1.0: 1×."


def test_a_case_with_bounds_of_its_own_is_not_held_against_the_claims_figure():
    own = case(900.0, unit="w", claimed=(0.0, 100.0))

    assert word(judge(SPAN, [own]).words).startswith("No case agrees; ")


def test_what_was_looked_at_in_vain_twice_for_one_reason_is_said_once():
    why = word(judge(SPAN, [looked_at(name, basis="trained", source="a file", why=WHY) for name in "ab"]).words)

    assert why == word(WHY)


def wide(low: float, mid: float, high: float, what: str = "T4") -> Case:
    return Case(what=what, basis="planner", source="somewhere", low=low, mid=mid, high=high)


@pytest.mark.parametrize(
    ("cases", "verdict", "words"),
    [
        ([wide(7, 9, 12)], "cannot_be_judged", "The range is too wide to tell for T4: 9× (7× to 12×)."),
        (
            [case(3.0), wide(7, 9, 12)],
            "holds",
            "It holds for V100: 3×. The range is too wide to tell for T4: 9× (7× to 12×).",
        ),
        (
            [case(1.0), wide(7, 9, 12)],
            "does_not_hold",
            "Claimed: 2× to 8×. The cases are smaller, 1×: V100: 1×. "
            "The range is too wide to tell for T4: 9× (7× to 12×).",
        ),
        (
            [case(3.0), case(1.0, "Ampere"), wide(7, 9, 12)],
            "holds_under_conditions",
            "It holds for V100: 3×. It does not hold for Ampere: 1×. "
            "The range is too wide to tell for T4: 9× (7× to 12×).",
        ),
    ],
)
def test_a_range_that_reaches_into_the_figures_is_neither_for_nor_against(cases, verdict, words):
    judged = judge(SPAN, cases)

    assert (judged.verdict, word(judged.words)) == (verdict, words)


def test_a_claim_is_no_evidence_for_itself():
    own = case(3.0, own=True)

    assert judge(SPAN, [own]).verdict == "cannot_be_judged"
    assert judge(SPAN, [own, case(1.0)]).verdict == "does_not_hold"
    assert judge(SPAN, [case(9.0, own=True), case(3.0)]).verdict == "holds_under_conditions"


def test_a_range_that_only_just_reaches_up_to_a_figure_decides_nothing():
    judged = judge(UP_TO, [wide(2.0, 4.0, 7.0)])

    assert (judged.verdict, judged.words.key) == ("cannot_be_judged", "claim.too_wide")


def test_a_case_that_is_left_out_leaves_nothing_open():
    left = left_out("T4", basis="planner", source="a file", why=WHY)

    assert judge(SPAN, [case(3.0), left]).verdict == "holds"
    assert word(judge(SPAN, [left]).words) == word(WHY)


@pytest.mark.parametrize(
    ("values", "verdict", "key"),
    [
        ([1.5, 5.9], "holds", "claim.holds"),
        ([1.5, 3.0], "does_not_hold", "claim.not_reached"),
        ([1.5, 11.0], "does_not_hold", "claim.beyond"),
        ([5.9, 11.0], "holds_under_conditions", "claim.holds_under_conditions"),
    ],
)
def test_up_to_a_figure_is_reached_and_not_crossed(values, verdict, key):
    judged = judge(UP_TO, [case(value) for value in values])

    assert (judged.verdict, judged.words.key) == (verdict, key)


def test_at_least_has_no_upper_end():
    assert judge(AT_LEAST, [case(0.4), case(0.99)]).verdict == "holds"
    assert judge(AT_LEAST, [case(0.39)]).verdict == "does_not_hold"


def test_what_only_stands_in_can_contradict_but_not_settle():
    assert judge(SPAN, [case(3.0, stands_in=True)]).verdict == "holds_under_conditions"
    assert judge(SPAN, [case(1.0, stands_in=True)]).verdict == "does_not_hold"
    assert judge(SPAN, [case(3.0, stands_in=True), case(4.0)]).verdict == "holds"


def test_a_part_that_nobody_could_judge_keeps_a_claim_from_holding_whole():
    judged = judge(SPAN, [case(3.0), looked_at("accuracy", basis="published", source="a file", why=WHY)])

    assert judged.verdict == "holds_under_conditions"
    assert word(judged.words) == f"It holds for V100: 3×. Open: {word(WHY)}"


def test_a_case_beside_the_verdict_does_not_count():
    judged = judge(SPAN, [case(3.0), case(100.0, beside=True)])

    assert judged.verdict == "holds"
    assert [entry.mid for entry in judged.evidence] == [3.0, 100.0]


def test_a_case_may_have_figures_of_its_own():
    assert judge(SPAN, [case(0.5, claimed=(0.4, 0.6))]).verdict == "holds"


def test_what_really_ran_is_named_first():
    judged = judge(SPAN, [case(3.0, "sum", "arithmetic"), case(4.0, "plan", "planner"), case(5.0, "run", "measured")])

    assert [entry.what for entry in judged.evidence] == ["run", "plan", "sum"]
    assert judged.decided_by == ("arithmetic", "planner", "measured")


def test_very_many_cases_are_counted_beyond_the_fourth():
    text = word(judge(SPAN, [case(3.0 + number, f"G{number}") for number in range(5)]).words)

    assert text == "Every case agrees: G0: 3×; G1: 4×; G2: 5×; G3: 6×; and 1 more."
