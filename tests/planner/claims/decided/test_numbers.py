"""Number formats and the defaults of dynamic loss scales."""

from __future__ import annotations

import pytest

from planner.claims.claim import load_claims
from planner.claims.decided.numbers import dynamic_scale, largest, smallest
from planner.claims.evidence.known import Known
from planner.claims.named import quantity
from planner.claims.standing import standing
from planner.claims.verdict import judge
from reports.text.messages import word
from tests.planner.claims.planted import judged, trained


def no_answer(**inputs):
    raise AssertionError("formats need no plan")


def known(**figures) -> Known:
    return Known(ask=no_answer, trained=trained(**figures))


def test_formats_are_computed():
    assert {case.basis for case in largest(known()).cases} == {"format"}
    assert judge(load_claims()["c26"], largest(known()).cases).verdict == "holds"
    assert judge(load_claims()["c27"], smallest(known()).cases).verdict == "holds"


def test_the_scalers_that_start_or_wait_otherwise_are_the_exceptions():
    entry = judged("c28", known())

    assert [case.what for case in entry.evidence if standing(entry.claim, case) == "disagrees"] == [
        "DeepSpeed dynamic loss scale, growth_interval",
        "Megatron-Core DynamicGradScaler, init_scale",
        "Megatron-Core DynamicGradScaler, growth_interval",
    ]
    assert entry.verdict == "holds_under_conditions"


@pytest.mark.parametrize(
    ("factors", "backoff", "growth"),
    [((0.5, 2.0), "agrees", "agrees"), ((0.25, 2.0), "disagrees", "agrees"), ((0.5, 4.0), "agrees", "disagrees")],
)
def test_the_path_of_a_scale_shows_what_it_was_multiplied_by(factors, backoff, growth):
    entry = judged("c28", known(factors=factors))
    by_case = {case.what: standing(entry.claim, case) for case in entry.evidence if case.basis == "trained"}

    assert by_case["digits, 16,777,216, interval 20, backoff_factor"] == backoff
    assert by_case["digits, 16,777,216, interval 20, growth_factor"] == growth
    assert by_case["digits, 16,777,216, interval 20, last scale"] == "beside"


def test_a_run_whose_scale_never_changed_says_nothing_of_the_factors():
    names = [case.what for case in dynamic_scale(known()).cases if "65,536" in case.what and case.basis == "trained"]

    assert names == ["digits, 65,536, interval 2,000, last scale", "digits, 65,536, interval 2,000, skipped of 100"]


def test_a_scale_is_printed_in_full():
    assert word(quantity(2.0**32, "scale")) == "4,294,967,296"
