"""The one rule from cases to a verdict."""

from __future__ import annotations

from dataclasses import replace

import pytest

from planner.claims.case import Case, looked_at
from planner.claims.claim import load_claims
from planner.claims.verdict import agrees, judge, quantity
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

    assert word(judged.words) == "It holds for Volta: 6.5×. It does not for Ampere: 1.9×."


def test_tolerance_widens_each_figure_by_its_share():
    rounded = replace(SPAN, tolerance_ratio=0.1)

    assert [agrees(rounded, case(value)) for value in (1.79, 1.81, 8.79, 8.81)] == [False, True, True, False]


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

    assert (judged.verdict, judged.words.key) == ("holds_under_conditions", "claim.holds_in_part")


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


def test_a_range_is_named_where_it_can_be_seen():
    spread = Case.of([2.5, 3.0, 7.0], what="Volta", basis="published", source="a file")

    assert word(judge(SPAN, [spread]).words) == "Every case agrees: Volta: 3× (2.5× to 7×)."


def test_a_share_that_rounds_to_nothing_has_no_sign():
    assert word(quantity(-0.002, "fraction_saved")) == "0%"
    assert word(quantity(-0.125, "fraction_saved")) == "-12%"
