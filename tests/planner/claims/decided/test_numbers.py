"""Number formats and loss scales: which cases decide, and that a small trial settles nothing by itself."""

from __future__ import annotations

from planner.claims.claim import load_claims
from planner.claims.decided.numbers import accuracy, dynamic_scale, fixed_scale, largest, smallest
from planner.claims.evidence.known import Known
from planner.claims.verdict import judge


def no_answer(**inputs):
    raise AssertionError("formats need no plan")


KNOWN = Known(ask=no_answer)


def test_formats_are_computed():
    assert {case.basis for case in largest(KNOWN).cases} == {"format"}
    assert judge(load_claims()["c27"], smallest(KNOWN).cases).verdict == "holds"


def test_the_scalers_that_start_or_wait_otherwise_are_the_exceptions():
    judged = judge(load_claims()["c28"], dynamic_scale(KNOWN).cases)
    defaults = [case for case in judged.evidence if case.basis == "published"]
    outside = [case.what for case in defaults if case.mid not in (2.0, 0.5, 2000, 65536, 32768)]

    assert outside == [
        "DeepSpeed dynamic loss scale, growth_interval",
        "Megatron-Core DynamicGradScaler, init_scale",
        "Megatron-Core DynamicGradScaler, growth_interval",
    ]


def test_a_trial_only_stands_in():
    assert all(case.stands_in for case in fixed_scale(KNOWN).cases)
    decision = accuracy(KNOWN)
    assert judge(load_claims()["c30"], decision.cases).verdict in ("holds_under_conditions", "does_not_hold",
                                                                  "cannot_be_judged")  # fmt: skip
    assert decision.cases[-1].what == "BERT-Large"
    assert decision.cases[-1].looked is not None
