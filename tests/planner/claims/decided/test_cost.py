"""Money and work: the claims' own arithmetic beside the planner's."""

from __future__ import annotations

import pytest

from mpplan.api.answer import estimate
from planner.claims.claim import load_claims
from planner.claims.decided.cost import deepseek, gpt4, llama2_work
from planner.claims.evidence.known import Known
from planner.claims.verdict import judge
from reports.text.messages import word


@pytest.fixture(scope="module")
def known() -> Known:
    return Known(ask=estimate)


def test_the_power_that_the_claim_states_is_no_evidence_for_it(known):
    judged = judge(load_claims()["c14"], deepseek(known).cases, deepseek(known).notes)
    power = next(case for case in judged.evidence if case.what.startswith("W / GPU"))

    assert judged.verdict == "holds_under_conditions"
    assert power in judged.evidence[3:]  # among those that do not agree
    assert any("184,320 before, 36,864 after (-80%)" in word(note) for note in judged.notes)


def test_what_gpt_4_cost_cannot_be_judged_but_what_it_buys_is_said(known):
    judged = judge(load_claims()["c17"], gpt4(known).cases)
    bought = [case.mid for case in judged.evidence if case.beside]

    assert judged.verdict == "cannot_be_judged"
    assert bought == sorted(bought, reverse=True)  # dearer hours buy less


def test_only_recomputation_takes_llama_2_to_1e24(known):
    judged = judge(load_claims()["c24"], llama2_work(known).cases)

    assert judged.verdict == "holds_under_conditions"
    assert "full recomputation" in judged.evidence[0].what
