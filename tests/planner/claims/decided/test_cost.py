"""Money and work: the claims' own arithmetic beside the planner's, with planted answers on either side."""

from __future__ import annotations

import pytest

from mpplan.api.answer import estimate
from planner.claims.claim import load_claims
from planner.claims.decided.cost import energy, gpt4, llama2_work
from planner.claims.evidence.known import Known
from planner.claims.standing import standing
from planner.claims.verdict import judge
from reports.text.messages import word
from tests.planner.claims.planted import judged, pair, planner, publish


@pytest.fixture(scope="module")
def known() -> Known:
    return Known(ask=estimate)


def standings(entry):
    return {case.what: standing(entry.claim, case) for case in entry.evidence}


@pytest.mark.parametrize(
    ("name", "saved", "verdict"),
    [
        ("c13", 0.50, "holds"),
        ("c13", 0.80, "does_not_hold"),
        (
            "c14",
            0.50,
            "holds_under_conditions",
        ),  # the claim's power per GPU is impossible, and its days are not planned
        ("c14", 0.20, "does_not_hold"),
        ("c15", 0.33, "holds"),
        ("c15", 0.70, "does_not_hold"),
        ("c16", 0.50, "cannot_be_judged"),
        ("c16", 0.90, "cannot_be_judged"),
    ],
)
def test_plans_decide_by_what_they_save(monkeypatch, name, saved, verdict):
    publish(monkeypatch)

    assert judged(name, planner(saved=saved)).verdict == verdict


def test_a_claim_is_no_evidence_for_itself(monkeypatch):
    publish(monkeypatch)
    fifteen, fourteen = judged("c15", planner(saved=0.70)), judged("c14", planner(saved=0.20))

    assert standings(fifteen)["4.20 → 2.80 USD"] == "beside"
    assert standings(fourteen)["4,096 × 45 → 2,048 × 18 GPU-days"] == "beside"


def test_the_power_that_the_claim_states_speaks_against_it():
    entry = judged("c14", planner())

    assert standings(entry)["power per GPU"] == "disagrees"
    assert any("184,320 before, 36,864 after (−80%)" in word(note) for note in entry.notes)


@pytest.mark.parametrize(
    ("days", "width", "stands"), [(18.0, 0.0, "agrees"), (100.0, 0.3, "disagrees"), (40.0, 0.6, "includes")]
)
def test_the_days_of_the_plan_are_held_against_the_18_of_the_claim(days, width, stands):
    by_case = standings(judged("c14", planner(days=days, width=width)))

    assert by_case["deepseek-v3, h800-sxm5-80gb × 8, FP8"] == stands


def test_a_pair_on_a_v100_decides_what_an_hour_of_it_costs(monkeypatch):
    publish(monkeypatch, (pair(1.5),))  # a third of the time

    assert standings(judged("c15", planner(saved=0.7)))["Volta, FP32 → FP16"] == "agrees"


def test_two_whole_runs_stand_beside_their_plans(known):
    decision = energy(known)
    beside = {case.what: case for case in decision.cases if case.beside}
    gpt3, planned_gpt3, llama, planned_llama = beside.values()

    assert (gpt3.mid, llama.mid) == (1287.0, 688.128)  # patt-0001, card-0008
    assert planned_gpt3.low < gpt3.mid < planned_gpt3.high
    assert planned_llama.low < llama.mid < planned_llama.high
    assert {case.unit for case in beside.values()} == {"mwh"}


def test_what_gpt_4_cost_cannot_be_judged_but_what_it_buys_is_said(known):
    entry = judge(load_claims()["c17"], gpt4(known).cases)
    bought = [case.mid for case in entry.evidence if case.beside]

    assert entry.verdict == "cannot_be_judged"
    assert bought == sorted(bought, reverse=True)  # dearer hours buy less
    assert bought[0] == pytest.approx(63e6 * 3600 * 0.35 * 312e12)  # at 1 USD: 2.5e25


def test_only_recomputation_takes_llama_2_to_1e24(known):
    entry = judge(load_claims()["c24"], llama2_work(known).cases)

    assert entry.verdict == "holds_under_conditions"
    assert "full recomputation" in entry.evidence[0].what


@pytest.mark.parametrize(
    ("share", "width", "verdict"),
    [(0.78, 0.0, "holds"), (0.30, 0.0, "does_not_hold"), (0.60, 0.4, "cannot_be_judged")],
)
def test_gpt_3s_share_of_a_v100(share, width, verdict):
    assert judged("c25", planner(share=share, width=width)).verdict == verdict


def test_layouts_that_do_not_fit_are_named(known):
    left = [what for what, stands in standings(judged("c25", known)).items() if stands == "left_out"]

    assert left == ["FP16, tp 8, pp 8", "FP16, tp 4, pp 16, zero 1"]
