"""How a case stands to its claim."""

from __future__ import annotations

from dataclasses import replace

import pytest

from planner.claims.case import Case, left_out, looked_at
from planner.claims.claim import load_claims
from planner.claims.standing import band, figures, reaches, standing
from planner.errors import Message

SPAN = replace(load_claims()["c06"], low=2.0, high=8.0, tolerance_ratio=0.0)
WHY = Message.of("claim.why.accuracy")


def case(low: float, mid: float, high: float, **more: object) -> Case:
    return Case(what="V100", basis="planner", source="somewhere", low=low, mid=mid, high=high, **more)


@pytest.mark.parametrize(
    ("ends", "expected"),
    [
        ((3.0, 4.0, 5.0), "agrees"),
        ((1.0, 2.0, 9.0), "agrees"),  # the middle lies within
        ((7.0, 9.0, 12.0), "includes"),  # 7 to 8 would agree
        ((1.0, 1.5, 2.0), "includes"),
        ((8.1, 9.0, 12.0), "disagrees"),
        ((1.0, 1.5, 1.9), "disagrees"),
    ],
)
def test_the_middle_agrees_and_only_a_whole_range_disagrees(ends, expected):
    assert standing(SPAN, case(*ends)) == expected


def test_the_claims_own_figures_can_contradict_but_never_agree():
    assert standing(SPAN, case(3.0, 4.0, 5.0, own=True)) == "beside"
    assert standing(SPAN, case(7.0, 9.0, 12.0, own=True)) == "beside"
    assert standing(SPAN, case(9.0, 9.0, 9.0, own=True)) == "disagrees"


def test_what_has_no_value_is_open_or_left_out():
    assert standing(SPAN, looked_at("V100", basis="published", source="a file", why=WHY)) == "not_found"
    assert standing(SPAN, left_out("V100", basis="planner", source="a file", why=WHY)) == "left_out"
    assert standing(SPAN, case(9.0, 9.0, 9.0, beside=True)) == "beside"


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("c22", (1.09, 1.275)),  # 1.10 to 1.25: a tenth of 10 % and of 25 %
        ("c11", (1.9, 2.1)),
        ("c07", (0.351, 0.429)),  # a share: a tenth of it
        ("c03", (1.8e9, None)),
        ("c18", (None, 0.825)),
    ],
)
def test_the_tolerance_is_a_share_of_the_gain_and_of_a_share(name, expected):
    claim = load_claims()[name]

    assert band(claim, case(1.0, 1.0, 1.0)) == pytest.approx(expected)


def test_a_case_may_have_a_unit_and_figures_of_its_own():
    claim = load_claims()["c20"]
    gigabytes = case(160.0, 160.0, 160.0, unit="gb", claimed=(80.0, 80.0))

    assert figures(claim, gigabytes) == (80.0, 80.0)
    assert band(claim, gigabytes) == (72.0, 88.0)


def test_up_to_six_times_is_near_from_five_and_a_half():
    claim = load_claims()["c23"]  # a gain of 5, a tenth of which is 0.5

    assert [reaches(claim, value) for value in (5.4, 5.5, 6.0)] == [False, True, True]
    assert figures(claim, case(1.0, 1.0, 1.0)) == (None, 6.0)
