"""One question asked in several ways has one answer, and a refusal's way out is one."""

from __future__ import annotations

import json

import pytest

from mpplan.api.answer import estimate, estimate_shortly
from mpplan.api.document import to_document
from planner.errors import InputFileError, NoPlanError
from reports.text.messages import word

CARD = {"model": "llama-3.1-8b", "method": "lora", "gpu": "rtx-4090"}
"""One such card is a little more likely to run out of memory than is allowed by default."""


def asked(answer, precision="bf16"):
    return next(plan for plan in answer.plans if plan.precision == precision)


@pytest.mark.parametrize(
    "more", [{"deadline": "30d"}, {"gpus": 1}, {"gpus": 1, "deadline": "10d"}, {"deadline": "10d", "max_gpus": 1}]
)
def test_a_card_that_is_planned_without_a_target_is_planned_with_one_that_it_meets(more):
    alone, again = (asked(estimate_shortly(**CARD, **given)) for given in ({}, more))

    assert alone.gpus == again.gpus == 1
    assert alone.memory_risk is not None
    assert alone.memory_risk > 0.05  # else the test is about nothing
    assert (again.layout, again.gpu_hours.mid) == (alone.layout, pytest.approx(alone.gpu_hours.mid))


def test_a_part_of_a_machine_of_cards_has_the_stack_of_the_whole():
    stacks = {gpus: estimate_shortly(**CARD, gpus=gpus).question["stack"].value for gpus in (1, 2, 8)}

    assert set(stacks.values()) == {"hf"}


def test_what_a_risk_allows_a_higher_one_does_not_turn_away():
    question = {"model": "mixtral-8x7b", "tokens": "10B", "gpus": 16, "precision": "fp8"}
    strict = asked(estimate_shortly(**question), "fp8")

    assert strict.memory_risk is not None
    assert strict.memory_risk > 0.05  # none is safe: the least risky one is planned
    loose = asked(estimate_shortly(**question, memory_risk=strict.memory_risk + 1e-6), "fp8")
    assert loose.gpu_hours.mid <= strict.gpu_hours.mid * 1.001


def test_fewer_gpus_of_a_node_give_way_to_more_that_cost_less():
    question = {"model": "gpt-oss-20b", "method": "lora", "gpu": "l40s-48gb"}
    planned = asked(estimate_shortly(**question))
    fewer = asked(estimate_shortly(**question, gpus=planned.gpus // 2))

    assert planned.gpus > 2
    assert fewer.gpu_hours.mid > 1.05 * planned.gpu_hours.mid


def refused(**question):
    with pytest.raises(NoPlanError) as caught:
        estimate_shortly(**question)
    return word(caught.value.message), word(caught.value.hint)


def test_a_later_deadline_is_named_with_the_money_that_it_takes_or_within_the_budget():
    large = {"params": "70B", "precision": "fp8", "max_gpus": 512}
    _, hint = refused(**large, deadline="20d", budget="1M")
    assert "--deadline 43d" in hint
    assert "--budget 2110000" in hint
    assert asked(estimate_shortly(**large, deadline="43d", budget="2110000"), "fp8").gpus <= 512

    _, hint = refused(**CARD, budget=20, deadline="30min")
    later = hint.split("`")[1].removeprefix("--deadline ")
    assert "within this budget" in hint
    assert asked(estimate_shortly(**CARD, budget=20, deadline=later)).fits


def test_what_draws_do_not_tell_from_zero_is_less_than_a_percent():
    message, _ = refused(params="70B", precision="fp8", gpus=64, deadline="20d")

    assert "with a probability of less than 1%" in message


def test_the_deadline_of_the_view_is_the_one_in_its_refusals():
    answer = estimate(model="llama-3.1-8b", method="sft", gpu="a100-sxm4-80gb", gpus=8, packed=True)
    reasons = [plan.why_not for plan in answer.same_deadline if not plan.fits]

    told = [dict(reason.values)["deadline_days"] for reason in reasons if "deadline_days" in dict(reason.values)]
    assert told
    assert told == [pytest.approx(answer.deadline_days)] * len(told)


def test_precisions_that_were_not_asked_for_have_a_reason_of_their_own():
    answer = estimate(**(CARD | {"gpu": "l4,h100-sxm5-80gb"}), budget=12, deadline="2h")
    reasons = {plan.precision: plan.why_not for plan in answer.plans if plan.gpu == "l4" and not plan.fits}

    others = {reason.key for precision, reason in reasons.items() if precision != "bf16"}
    assert others == {"why.asked_has_none"}
    assert reasons["bf16"].key != "why.asked_has_none"


def test_a_commitment_is_told_with_the_gpu_whose_price_has_it(tmp_path):
    (tmp_path / "quote.toml").write_text(
        'vendor = "Acme"\ngpu = "h100-sxm5-80gb"\nprice_per_gpu_h = 2.1\ncommitment = "1y"\n', encoding="utf-8"
    )
    answer = estimate(
        params="7B", gpus=64, precision="bf16", quote=str(tmp_path / "quote.toml"),
        gpu="h100-sxm5-80gb,h200-sxm-141gb",
    )  # fmt: skip
    warnings = to_document(answer)["warnings"]

    assert any(text.startswith("H100 SXM5 80 GB: This price requires a one-year commitment") for text in warnings)


def test_an_architecture_that_is_merely_spelt_alike_is_not_offered(tmp_path):
    for given, offered in (("mamba", False), ("lama", True)):
        config = tmp_path / f"{given}.json"
        config.write_text(json.dumps({"model_type": given, "hidden_size": 64}), encoding="utf-8")
        with pytest.raises(InputFileError) as caught:
            estimate_shortly(model=str(config), gpus=8)

        assert ("closest is" in str(caught.value.hint)) == offered
