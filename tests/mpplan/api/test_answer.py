"""The Python API: the flags' names, Python's values, the command's answer."""

from __future__ import annotations

import contextlib
import inspect
import json
import pickle
import pydoc
import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import mpplan
from mpplan.api.answer import estimate, estimate_briefly
from mpplan.api.document import to_document
from planner.answer.plan import Answer, Plan
from planner.errors import InputFileError, NoPlanError, UsageError
from planner.question.inputs import INPUTS
from reports.text.messages import word
from tests.examples import examples


def test_the_package_offers_its_api_and_nothing_else():
    errors = ["InputFileError", "InternalError", "MpplanError", "NoPlanError", "UsageError"]
    assert dir(mpplan) == ["Answer", *errors, "__version__", "estimate", "to_document"]
    assert mpplan.Answer is Answer
    assert mpplan.estimate is estimate
    with pytest.raises(AttributeError, match="no attribute 'answer'"):
        mpplan.answer  # noqa: B018


def test_an_error_is_text_for_people_and_a_key_with_values_for_programs():
    with pytest.raises(mpplan.NoPlanError, match=r"^BF16 on 8 × H100 SXM5 80\sGB: does not fit") as caught:
        estimate(params="70B", gpus=8)

    error = caught.value
    assert (error.message, str(error)) == (error.args[0], error.args[0])
    assert isinstance(error.hint, str)
    assert (error.key, error.values["gpus"]) == ("error.no_plan_on", 8)
    assert (error.exit_code, pickle.loads(pickle.dumps(error)).key) == (8, error.key)


def test_what_estimate_raises_is_what_its_documentation_names():
    named = re.findall(r"^ +(\w+Error): ", estimate.__doc__ or "", re.MULTILINE)

    assert named == ["UsageError", "InputFileError", "NoPlanError", "InternalError"]
    assert all(issubclass(getattr(mpplan, name), mpplan.MpplanError) for name in named)


def test_a_flag_of_the_command_alone_is_no_input_and_the_help_of_the_function_does_not_list_it():
    with pytest.raises(UsageError, match="unknown input `max_cost`") as caught:
        estimate(params="7B", max_cost=1e6)

    assert caught.value.hint == "`help(mpplan.estimate)` lists them all"
    assert "max_cost" not in pydoc.render_doc(mpplan.estimate)
    assert "power_cap" in pydoc.render_doc(mpplan.estimate)


def test_defaults_of_the_command_are_not_those_of_the_function(monkeypatch, tmp_path):
    monkeypatch.setenv("MPPLAN_ESTIMATE_PUE", "1.9")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mpplan.toml").write_text("[estimate]\npue = 1.9\n", encoding="utf-8")

    assert estimate_briefly(params="7B", gpus=8).question["pue"].source == "default"


def test_numbers_of_numpy_are_numbers():
    plain = estimate_briefly(params="7B", gpus=8, tokens=1e9, price=2.5)
    own = estimate_briefly(params="7B", gpus=np.int64(8), tokens=np.float32(1e9), price=np.float64(2.5))

    assert own.plans == plain.plans


def test_numbers_lists_and_text_mean_the_same_as_after_a_flag():
    by_text = estimate(params="7B", tokens="140B", gpu="h100-sxm5-80gb,h200-sxm-141gb", gpus="8", pue="1.1")
    by_value = estimate(params=7e9, tokens=140_000_000_000, gpu=["h100-sxm5-80gb", "h200-sxm-141gb"], gpus=8, pue=1.1)

    assert by_value.plans == by_text.plans
    assert by_value.savings == by_text.savings


def test_a_list_for_an_input_of_one_value_plans_nothing():
    with pytest.raises(UsageError, match="gpus takes one value"):
        estimate_briefly(params="7B", gpus=[8, 16])


def test_none_is_left_to_the_default():
    answer = estimate_briefly(params="7B", gpus=8, precision=None)

    assert answer.question["precision"].source == "default"


def test_a_path_is_a_model(tmp_path: Path):
    with pytest.raises(UsageError, match=r"config\.json"):
        estimate(model=tmp_path / "config.json")


def test_an_unknown_part_is_named_with_its_near_names():
    with pytest.raises(UsageError) as caught:
        estimate(parms="7B")

    assert "parms" in caught.value.message
    assert "`params`" in caught.value.hint


@pytest.mark.parametrize("value", [True, object()])
def test_a_value_that_no_flag_could_carry_is_refused(value):
    with pytest.raises(UsageError, match="gpus"):
        estimate(params="7B", gpus=value)


def test_what_does_not_fit_raises_what_the_command_prints():
    with pytest.raises(NoPlanError, match="GiB"):
        estimate(params="70B", gpus=1)


def test_the_document_of_an_answer_is_the_commands():
    document = mpplan.to_document(estimate(params="7B", gpus=8))

    assert document["schema"] == "mpplan.estimate/2"
    assert document["mpplan"] == mpplan.__version__


def test_help_and_editors_see_every_input():
    assert list(inspect.signature(estimate).parameters) == [item.name for item in INPUTS]


ASKED = st.fixed_dictionaries(
    {"params": st.sampled_from(["125M", "1B", "7B", "13B", "70B"]), "tokens": st.sampled_from(["10M", "1B", "300B"])},
    optional={
        "gpus": st.sampled_from([1, 3, 8, 24, 264, 1024]),
        "gpu": st.sampled_from(["h100-sxm5-80gb", "a100-sxm4-80gb", "b200-sxm-180gb", "l4-24gb", "gb200-nvl72-186gb"]),
        "method": st.sampled_from(["pretrain", "sft", "lora", "qlora"]),
        "precision": st.sampled_from(["fp32", "tf32", "fp16", "bf16", "fp8"]),
        "seq_len": st.sampled_from([128, 2048, 131_072]),
        "stack": st.sampled_from(["typical", "tuned", "eager"]),
        "power_cap": st.sampled_from(["13kW", "300kW", "1MW"]),
        "power_limit": st.sampled_from([300, 500]),
        "pue": st.sampled_from([1.0, 1.1, 2.0]),
        "price": st.sampled_from([0.01, 2.5, 150.0]),
        "electricity": st.sampled_from([0.0, 0.08, 1.0]),
        "embodied": st.just(True),
        "deadline": st.sampled_from(["1d", "30d", "900d"]),
        "budget": st.sampled_from([1e3, 1e6]),
        "offload": st.sampled_from(["optimizer"]),
    },
)


NO_LAYOUT_IN_BETWEEN = {
    "model": "llama-3.1-8b", "tokens": "300B", "method": "lora", "seq_len": 131_072, "power_limit": 500,
    "electricity": 0.08, "offload": "optimizer",
}  # fmt: skip
"""No number of GPUs between one that is too slow and one in time splits this model: a search of none failed here."""


@examples(12)
@example(NO_LAYOUT_IN_BETWEEN)
@given(ASKED)
def test_no_question_has_an_answer_that_cannot_be_right(asked):
    with contextlib.suppress(UsageError, NoPlanError):  # inputs that exclude each other, or nothing fits
        estimate(**asked)  # an impossible answer raises InternalError


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        ({"params": "7B", "gpus": "8", "tokens": "1B"}, True),
        ({"params": "7B", "gpus": "8", "tokens": "1B", "method": "lora"}, False),
        ({"model": "resnet-50", "gpus": "8"}, False),
    ],
)
def test_whole_runs_that_pretrain_language_models_vouch_for_no_other_kind(asked, says):
    assert (estimate_briefly(**asked).run_totals is not None) is says


@pytest.mark.parametrize("setup", [{}, {"stack": "tuned"}, {"tp": "2"}], ids=["nothing", "a stack", "a layout"])
def test_well_known_runs_vouch_for_questions_asked_as_they_were(setup):
    totals = estimate_briefly(params="7B", gpus="8", tokens="1B", **setup).run_totals

    assert totals is not None
    assert (totals.asked_runs > 0) is (not setup)
    assert totals.runs


def test_fine_tuning_that_outgrows_a_node_has_the_stack_of_several():
    asked = {"method": "sft", "model": "llama-3.1-70b", "examples": 50_000, "gpu": "h100-sxm5-80gb"}
    small = estimate_briefly(**asked | {"model": "llama-3.1-8b"})
    sought = estimate_briefly(**asked)
    (plan,) = (plan for plan in sought.plans if plan.precision == "bf16")
    given = estimate_briefly(**asked, gpus=plan.gpus)

    assert small.question["stack"].value == "hf"
    assert (sought.question["stack"].value, sought.question["stack"].source) == ("typical", "default")
    assert plan.nodes > 1
    assert plan.gpu_hours == next(other.gpu_hours for other in given.plans if other.precision == "bf16")


def test_fine_tuning_that_fits_no_single_node_is_planned_on_several():
    answer = estimate_briefly(method="sft", params="180B", tokens="20M", gpu="h100-sxm5-80gb")
    (plan,) = (plan for plan in answer.plans if plan.precision == "bf16")

    assert plan.fits
    assert plan.nodes > 1


def test_beside_a_gpu_whose_node_is_enough_another_takes_as_many_nodes_as_alone():
    asked = {"method": "lora", "model": "llama-3.1-8b", "examples": 50_000, "epochs": 3, "deadline": "60m"}
    alone = planned(**asked, gpu="a100-sxm4-80gb")
    answer = estimate_briefly(**asked, gpu=["a100-sxm4-80gb", "h100-sxm5-80gb"])
    beside = {plan.gpu: plan for plan in answer.plans if plan.precision == "bf16"}

    assert alone.nodes > 1 == beside["h100-sxm5-80gb"].nodes
    assert beside["a100-sxm4-80gb"].gpus == alone.gpus


def test_costs_beside_the_gpus_are_billed_though_a_precision_has_no_layout(tmp_path):
    beside = tmp_path / "beside.toml"
    beside.write_text("[network]\nratio = 0.05\n")
    asked = {"method": "lora", "model": "llama-3.1-8b", "gpu": "rtx-4090"}

    assert planned(**asked, beside=beside).cost_usd.mid == pytest.approx(1.05 * planned(**asked).cost_usd.mid, abs=0.01)


def test_a_refusal_over_several_gpus_is_of_the_one_that_the_least_money_would_do_for():
    asked = {"params": "70B", "precision": "fp8", "deadline": "30d", "budget": "1.6M"}
    gpus = ["h100-sxm5-80gb", "b200-sxm-180gb"]
    needed = {}
    for gpu in gpus:
        with pytest.raises(NoPlanError) as caught:
            estimate(**asked, gpu=gpu)
        needed[gpu] = caught.value.enough.usd
    with pytest.raises(NoPlanError) as caught:
        estimate(**asked, gpu=gpus)

    assert needed["h100-sxm5-80gb"] > needed["b200-sxm-180gb"] == caught.value.enough.usd
    assert "B200" in str(caught.value.message)


def test_fine_tuning_that_small_cards_refuse_says_how_many_would_hold_it():
    with pytest.raises(NoPlanError) as caught:
        estimate(method="sft", model="llama-3.1-70b", gpu="rtx-4090")

    assert "BF16 on 1 × RTX 4090" in str(caught.value.message)
    assert "it fits on 112 GPUs" in str(caught.value.hint)


def test_the_stack_of_several_nodes_is_no_way_out_for_one():
    asked = {"method": "lora", "model": "llama-3.1-8b", "gpu": "h100-sxm5-80gb", "budget": 8, "max_gpus": 8}

    with pytest.raises(NoPlanError):
        estimate(**asked, gpus=1)
    with pytest.raises(NoPlanError):
        estimate(**asked)


@pytest.mark.parametrize(
    ("gpu", "few", "many"), [("h100-sxm5-80gb", 8, 16), ("h100-sxm5-80gb", 16, 32), ("rtx-4090", 8, 16)]
)
def test_one_number_of_gpus_has_one_answer_whatever_number_was_asked_for(gpu, few, many):
    asked = {"method": "lora", "model": "llama-3.1-8b", "gpu": gpu}
    smaller, larger = estimate_briefly(**asked, gpus=few), estimate_briefly(**asked, gpus=many)
    point = next(point for point in smaller.curve if point.gpus == many)
    plan = next(plan for plan in larger.plans if plan.precision == "bf16")

    assert smaller.question["stack"].value == larger.question["stack"].value == "hf"
    assert point.duration_days.mid == pytest.approx(plan.duration_days.mid, rel=0.05)
    back = next(point for point in larger.curve if point.gpus == few)
    plan = next(plan for plan in smaller.plans if plan.precision == "bf16")
    assert back.duration_days.mid == pytest.approx(plan.duration_days.mid, rel=0.05)


def planned(**asked: object) -> Plan:
    (plan,) = (plan for plan in estimate_briefly(**asked).plans if plan.precision == "bf16")  # type: ignore[arg-type]
    return plan


@pytest.mark.parametrize("deadline", ["1.5h", "2h"])
def test_adapters_that_one_node_cannot_train_in_time_take_more_nodes_and_no_pipeline(deadline):
    asked = {"method": "lora", "model": "llama-3.1-70b", "gpu": "h100-sxm5-80gb", "deadline": deadline}
    plan = planned(**asked)
    with pytest.raises(NoPlanError) as caught:
        estimate_briefly(**asked, gpus=8)

    assert plan.nodes > 1
    assert plan.layout.pp == 1
    assert f"--gpus {plan.gpus}" in str(caught.value.hint)


def test_a_larger_budget_never_ends_a_fine_tuning_later():
    asked = {"method": "lora", "model": "llama-3.1-70b", "gpu": "h100-sxm5-80gb"}
    days = []
    for budget in (60, 80, 100, 103, 150, 1000):
        try:
            days.append(planned(**asked, budget=budget).duration_days.mid)
        except NoPlanError:
            days.append(float("inf"))

    assert days == sorted(days, reverse=True)
    assert days[0] > days[-1] > 0.01  # minutes are for starting up


CARD = {"model": "llama-3.1-8b", "method": "lora", "gpu": "rtx-4090"}
"""One such card is a little more likely to run out of memory than is allowed by default."""


def plan_in(answer, precision="bf16"):
    return next(plan for plan in answer.plans if plan.precision == precision)


@pytest.mark.parametrize(
    "more", [{"deadline": "30d"}, {"gpus": 1}, {"gpus": 1, "deadline": "10d"}, {"deadline": "10d", "max_gpus": 1}]
)
def test_a_card_that_is_planned_without_a_target_is_planned_with_one_that_it_meets(more):
    alone, targeted = (plan_in(estimate_briefly(**CARD, **given)) for given in ({}, more))

    assert alone.gpus == targeted.gpus == 1
    assert alone.memory_risk is not None
    assert alone.memory_risk > 0.05  # else the test is about nothing
    assert (targeted.layout, targeted.gpu_hours.mid) == (alone.layout, pytest.approx(alone.gpu_hours.mid))


def test_a_part_of_a_machine_of_cards_has_the_stack_of_the_whole():
    stacks = {gpus: estimate_briefly(**CARD, gpus=gpus).question["stack"].value for gpus in (1, 2, 8)}

    assert set(stacks.values()) == {"hf"}


@pytest.mark.parametrize(
    ("asked", "changed"),
    [
        ({"method": "lora", "gpu": "rtx-4090", "gpus": 4, "global_batch": 8}, {"global_batch": 12}),
        ({"method": "lora", "gpu": "h100-sxm5-80gb", "gpus": 1}, {"global_batch": 10}),
        ({"method": "sft", "policy": "bf16-pure", "gpu": "rtx-4090", "gpus": 8}, {"memory_risk": 0.01}),
        ({"method": "sft", "policy": "bf16-pure", "gpu": "rtx-4090", "gpus": 8}, {"micro_batch": 2}),
        ({"method": "sft", "policy": "bf16-pure", "gpu": "rtx-4090", "gpus": 10}, {"global_batch": 30}),
    ],
)
def test_batch_risk_and_layout_do_not_change_what_software_trains(asked, changed):
    asked = {"model": "llama-3.1-8b", "examples": 5000} | asked
    stacks = [estimate_briefly(**asked | more).question["stack"].value for more in ({}, changed)]

    assert stacks == ["hf", "hf"]


def test_a_stack_that_one_node_forces_is_told_with_the_flag_that_undoes_it():
    asked = {"model": "llama-3.1-70b", "method": "lora", "examples": 5000, "gpus": 8}
    alone, beside = "warning.stack_over_nodes", "warning.one_stack_over_nodes"
    told = {
        key: [m for m in estimate_briefly(**asked, **more).warnings if m.key in (alone, beside)]
        for key, more in {
            "": {"gpu": "h100-sxm5-80gb"},
            alone: {"gpu": "rtx-4090"},
            beside: {"gpu": ["h100-sxm5-80gb", "rtx-4090"]},
            "given": {"gpu": "h100-sxm5-80gb", "stack": "typical"},
        }.items()
    }

    assert told[""] == told["given"] == []
    for key in (alone, beside):
        (message,) = told[key]
        assert message.key == key
        assert "RTX 4090" in word(message)
        assert "`--stack hf`" in word(message)


def test_what_a_risk_allows_a_higher_one_does_not_turn_away():
    question = {"model": "mixtral-8x7b", "tokens": "10B", "gpus": 16, "precision": "fp8"}
    strict = plan_in(estimate_briefly(**question), "fp8")

    assert strict.memory_risk is not None
    assert strict.memory_risk > 0.05  # none is safe: the least risky one is planned
    loose = plan_in(estimate_briefly(**question, memory_risk=strict.memory_risk + 1e-6), "fp8")
    assert loose.gpu_hours.mid <= strict.gpu_hours.mid * 1.001


def test_fewer_gpus_of_a_node_give_way_to_more_that_cost_less():
    question = {"model": "gpt-oss-20b", "method": "lora", "gpu": "l40s-48gb"}
    planned = plan_in(estimate_briefly(**question))
    fewer = plan_in(estimate_briefly(**question, gpus=planned.gpus // 2))

    assert planned.gpus > 2
    assert fewer.gpu_hours.mid > 1.05 * planned.gpu_hours.mid


def refused(**question):
    with pytest.raises(NoPlanError) as caught:
        estimate_briefly(**question)
    return word(caught.value.message), word(caught.value.hint)


def test_a_later_deadline_is_named_with_the_money_that_it_takes_or_within_the_budget():
    large = {"params": "70B", "precision": "fp8", "max_gpus": 512}
    _, hint = refused(**large, deadline="20d", budget="1M")
    later, dearer = (word.split(" ")[1] for word in hint.split("`")[1::2])  # `--deadline 42d` and `--budget 2080000`
    assert later.endswith("d")
    assert plan_in(estimate_briefly(**large, deadline=later, budget=dearer), "fp8").gpus <= 512

    _, hint = refused(**CARD, budget=20, deadline="30min")
    later = hint.split("`")[1].removeprefix("--deadline ")
    assert "within this budget" in hint
    assert plan_in(estimate_briefly(**CARD, budget=20, deadline=later)).fits


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
    answer = estimate_briefly(
        params="7B", gpus=64, precision="bf16", quote=str(tmp_path / "quote.toml"),
        gpu="h100-sxm5-80gb,h200-sxm-141gb",
    )  # fmt: skip
    warnings = to_document(answer)["warnings"]

    assert any(text.startswith("H100 SXM5 80 GB: this price requires a one-year commitment") for text in warnings)


def test_an_architecture_that_is_merely_spelt_alike_is_not_offered(tmp_path):
    for name, offered in (("mamba", False), ("lama", True)):
        config = tmp_path / f"{name}.json"
        config.write_text(json.dumps({"model_type": name, "hidden_size": 64}), encoding="utf-8")
        with pytest.raises(InputFileError) as caught:
            estimate_briefly(model=str(config), gpus=8)

        assert ("closest is" in str(caught.value.hint)) == offered


LONG = {
    "model": "llama-3.1-8b", "method": "lora", "gpu": "h100-sxm5-80gb", "gpus": 8, "global_batch": 32,
    "lengths": 600, "packed": True,
}  # fmt: skip
"""Adapters whose logits one node holds up to some length of a sequence."""
LOSS_KEYS = ("warning.lean_loss", "warning.one_lean_loss")


def settled(answer):
    """Stack and loss of an answer, and where the loss is from."""
    loss = answer.question.get("loss")
    return answer.question["stack"].value, None if loss is None else (loss.value, loss.source)


def told(answer):
    return [message for message in answer.warnings if message.key in LOSS_KEYS]


def test_a_longer_sequence_changes_the_loss_and_not_the_software():
    short, long = (estimate_briefly(**LONG, seq_len=seq_len) for seq_len in (20480, 24576))

    assert (settled(short), told(short)) == (("hf", None), [])
    assert settled(long) == ("hf", ("fused", "derived"))
    assert [assumption.input for assumption in long.assumptions].count("loss") == 1
    assert "this run does not fit on one node" in word(long.question["loss"].note)
    (message,) = told(long)
    assert message.key == "warning.lean_loss"
    assert "`--loss fused`" in word(message)


@pytest.mark.parametrize("chosen", [{"loss": "full"}, {"stack": "hf", "loss": "fused"}, {"stack": "typical"}])
def test_nothing_is_said_of_the_loss_where_it_or_the_stack_was_chosen(chosen):
    answer = estimate_briefly(**LONG, seq_len=24576, **chosen)

    assert answer.question["stack"].value == chosen.get("stack", "typical")
    assert told(answer) == []
    assert "loss" not in {assumption.input for assumption in answer.assumptions}


def test_gpus_that_are_compared_have_one_loss():
    answer = estimate_briefly(**LONG | {"gpu": ["h100-sxm5-80gb", "b200-sxm-180gb"]}, seq_len=24576)

    assert settled(answer) == ("hf", ("fused", "derived"))
    (message,) = told(answer)
    assert (message.key, dict(message.values)["gpus"]) == ("warning.one_lean_loss", ("h100-sxm5-80gb",))


def test_a_run_that_no_loss_makes_small_enough_for_a_node_has_the_stack_of_several():
    answer = estimate_briefly(model="llama-3.1-405b", method="lora", gpu="h100-sxm5-80gb", gpus=32, examples=5000)

    assert settled(answer) == ("typical", None)
    (message,) = (each for each in answer.warnings if each.key == "warning.stack_over_nodes")
    assert "faster" not in word(message)


@pytest.mark.parametrize("stack", ["hf", "unsloth", "torchtune"])
def test_a_named_stack_is_planned_with_checkpointing_that_it_can_be_set_to(stack):
    asked = {"model": "llama-3.1-8b", "method": "lora", "gpu": "l40s-48gb", "gpus": 1, "stack": stack, "packed": True}
    lengths = (512, 1024, 2048, 4096)
    plans = [plan for seq_len in lengths for plan in estimate_briefly(**asked, seq_len=seq_len, lengths=400).plans]

    assert {plan.layout.act_ckpt for plan in plans if plan.layout} == {"none", "full"}


def test_checkpointing_that_a_named_stack_lacks_is_planned_as_asked_and_warned_of():
    asked = {"model": "llama-3.1-8b", "method": "lora", "gpu": "h100-sxm5-80gb", "gpus": 1}
    keys = {}
    for stack, act_ckpt in (("hf", "every-2"), ("hf", "full"), ("typical", "every-2")):
        answer = estimate_briefly(**asked, stack=stack, act_ckpt=act_ckpt)
        keys[stack, act_ckpt] = [each for each in answer.warnings if each.key == "warning.unusual_checkpointing"]
        assert {plan.layout.act_ckpt for plan in answer.plans if plan.layout} == {act_ckpt}

    (message,) = keys.pop(("hf", "every-2"))
    assert "`--stack hf`" in word(message)
    assert "`--act-ckpt every-2`" in word(message)
    assert set(map(len, keys.values())) == {0}
