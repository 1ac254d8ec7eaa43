"""Cases in words."""

from __future__ import annotations

from planner.claims.case import Case
from planner.claims.claim import load_claims
from planner.claims.named import LABELS, Naming, label, quantity, span
from reports.text.messages import word

CLAIM = load_claims()["c06"]


def case(value: float, what: str = "V100", **more: object) -> Case:
    return Case.exactly(value, what=what, basis="published", source="somewhere", **more)


def test_very_many_cases_are_counted():
    named = Naming(claim=CLAIM, most=2, ranges=False)

    assert word(named([case(3.0, "a"), case(4.0, "b"), case(5.0, "c")])) == "a: 3×; b: 4×; and 1 more"
    assert word(named([case(3.0, "a")])) == "a: 3×"


def test_a_range_is_named_where_it_can_be_seen_and_asked_for():
    spread = Case.of([2.5, 3.0, 7.0], what="Volta", basis="published", source="a file")

    assert word(Naming(claim=CLAIM, most=2, ranges=True)([spread])) == "Volta: 3× (2.5× to 7×)"
    assert word(Naming(claim=CLAIM, most=2, ranges=False)([spread])) == "Volta: 3×"
    assert word(Naming(claim=CLAIM, most=2, ranges=True)([case(3.0)])) == "V100: 3×"


def test_a_share_that_rounds_to_nothing_has_no_sign():
    assert word(quantity(-0.002, "fraction_saved")) == "0%"
    assert word(quantity(-0.125, "fraction_saved")) == "−12%"


def test_a_span_is_in_the_unit_of_the_claim_else_in_that_of_the_cases():
    mixed = span(CLAIM, [case(2.0), case(5.0), case(900.0, unit="w")])
    watts = span(CLAIM, [case(900.0, unit="w")])

    assert (word(mixed["low"]), word(mixed["high"])) == ("2×", "5×")
    assert word(watts["low"]) == "900 W"


def test_bytes_that_are_hardly_any_and_points_are_told_as_people_say_them():
    assert word(quantity(0.0, "bytes_per_param")) == word(quantity(0.0156, "bytes_per_param")) == "<0.1 bytes"
    assert word(quantity(2.03, "bytes_per_param")) == "2.03 bytes"
    assert word(quantity(0.0253, "points")) == "2.53 points"
    assert word(quantity(0.0253, "points"), "zh") == "2.53 个百分点"


def test_a_case_whose_name_is_in_words_has_it_in_every_language():
    told = Naming(claim=CLAIM, most=2, ranges=False)([case(3.0, "power per GPU"), case(2.0, "V100")])

    assert word(told) == "power per GPU: 3×; V100: 2×"
    assert word(told, "zh").startswith("每张 GPU 的功率：3×")
    assert {word(label(what)) for what in LABELS} == set(LABELS)
