"""The quickest safe way: named where a plan is risky, as quick as its flag makes the run, and of the same weights."""

from __future__ import annotations

from dataclasses import replace

import pytest

from planner.answer.plan import Answer
from planner.planning.advice.safer import _ways
from planner.planning.estimate import estimate
from planner.question.question import Question
from reports.text.messages import word
from tests.planner.build import case_for, make_question, parts, rates_and_prices


def answered(question: Question) -> Answer:
    return estimate(question, rates_and_prices(question), detailed=False)


def offered(answer: Answer) -> list[dict[str, object]]:
    return [parts(message) for message in answer.warnings if message.key == "warning.safe_way"]


CARDS = {"model": "llama-3.1-8b", "gpu": "rtx-4090", "gpus": "8", "tokens": "1B"}


@pytest.mark.parametrize(
    ("asked", "flag"),
    [
        (CARDS, {"offload": "optimizer"}),
        (CARDS | {"tp": "8"}, {"offload": "optimizer"}),
        # the plan is safe, though less than half as fast
        ({"model": "qwen3-8b", "gpu": "rtx-5090", "gpus": "8", "tokens": "5B"}, {"offload": "optimizer"}),
        (
            {"model": "qwen2.5-0.5b", "gpu": "quadro-rtx5000-16gb", "gpus": "1", "method": "sft", "precision": "fp16"},
            {"loss": "fused"},
        ),
        # the plans are safe, and a much faster layout lacks the room that all logits take
        ({"model": "gemma-3-12b", "gpu": "rtx-4090", "gpus": "1", "method": "qlora"}, {"loss": "fused"}),
        ({"model": "qwen3-14b", "gpu": "l40s", "gpus": "4", "method": "lora", "seq_len": "8192"}, {"loss": "fused"}),
    ],
)
def test_the_way_named_takes_the_time_and_risk_that_the_flag_gives(asked, flag):
    answer = answered(make_question(**asked))
    (way,) = offered(answer)
    (plan,) = (
        p
        for p in answered(make_question(**asked, **flag)).plans
        if p.precision == make_question(**asked).policy.precision
    )

    ((name, value),) = flag.items()
    words = f"with --{name} {value}"
    assert word(next(m for m in answer.warnings if m.key == "warning.safe_way")).count(words) == 1
    assert way["days"] == pytest.approx(plan.duration_days.mid)
    assert way["risk"] == plan.memory_risk <= 0.05
    assert way["time_ratio"] < 1.0


def test_every_way_is_the_question_with_its_flag_put_in_or_left_out():
    question = make_question(**CARDS, tp="4", zero="1", act_ckpt="none", micro_batch="2")
    case = case_for(question)
    ways = {word(way.change): way.question for way in _ways(question, case)}

    assert list(ways) == [
        "with --loss fused", "without --tp 4", "without --zero 1", "without --act-ckpt none", "with --micro-batch 1",
        "with --offload optimizer", "with --optimizer adamw-8bit",
    ]  # fmt: skip
    fixed = question.fixed
    assert ways["without --tp 4"] == replace(question, fixed=replace(fixed, tp=None))
    assert ways["with --micro-batch 1"] == replace(question, fixed=replace(fixed, micro_batch=1))
    assert ways["without --act-ckpt none"] == replace(question, fixed=replace(fixed, act_ckpt=None))
    assert ways["with --loss fused"] == replace(question, tuning=replace(question.tuning, loss="fused"))
    assert ways["with --optimizer adamw-8bit"].optimizer.id == "adamw-8bit"


@pytest.mark.parametrize(
    ("stack", "words"),
    [
        ("eager", "with --loss fused (Liger's kernels, which never hold all logits)"),
        ("typical", "with --loss fused"),  # Megatron's relatives have kernels of their own
    ],
)
def test_the_leaner_loss_is_called_ligers_where_the_stack_can_take_liger(stack, words):
    question = make_question(model="gemma-3-12b", gpu="rtx-4090", gpus="1", method="qlora", stack=stack)

    assert words in [word(way.change) for way in _ways(question, case_for(question))]


def test_to_fine_tune_all_weights_no_way_trains_fewer_of_them():
    question = make_question(model="qwen2.5-0.5b", gpu="t4", gpus="1", method="sft", precision="fp16")
    case = case_for(question)

    assert {way.question.method for way in _ways(question, case)} == {"sft"}


@pytest.mark.parametrize("asked", [{"params": "1B", "gpus": "8"}, {"params": "7B", "gpus": "64"}])
def test_a_plan_that_is_safe_and_not_short_of_memory_has_no_other_way_named(asked):
    assert offered(answered(make_question(**asked))) == []


@pytest.mark.parametrize(
    "asked",
    [
        {"model": "mistral-7b", "gpu": "a100-sxm4-80gb", "gpus": "1"},  # the logits take little of the memory
        {"model": "qwen3-8b", "gpu": "l40s", "gpus": "1", "seq_len": "4096"},  # they take much, but there is room
        {"model": "gemma-3-12b", "gpu": "rtx-4090", "gpus": "1", "method": "qlora", "loss": "fused"},  # it is taken
    ],
)
def test_a_leaner_loss_that_would_not_make_a_fine_tuning_clearly_faster_is_not_named(asked):
    assert offered(answered(make_question(**({"method": "lora"} | asked)))) == []


def test_where_a_leaner_loss_is_about_as_fast_no_layout_far_above_the_risk_allowed_is_named():
    asked = {"model": "llama-3.1-8b", "gpu": "h100-sxm5-80gb", "gpus": "4", "method": "sft", "seq_len": "8192"}
    risky = "warning.faster_at_a_risk"

    given = {message.key for message in answered(make_question(**asked)).warnings}
    (bolder,) = (plan for plan in answered(make_question(**asked, memory_risk="40%")).plans if plan.precision == "bf16")

    assert bolder.memory_risk > 0.15  # it is much faster, and would be named without the loss
    assert "warning.safe_way" in given
    assert risky not in given


def test_a_layout_little_above_the_risk_allowed_is_named_beside_a_leaner_loss():
    asked = {"model": "llama-3.1-8b", "gpu": "rtx-4090", "gpus": "2", "method": "lora"}
    given = [message.key for message in answered(make_question(**asked)).warnings]

    assert given.index("warning.faster_at_a_risk") + 1 == given.index("warning.safe_way")
    assert given.count("warning.safe_way") == 1  # as a leaner loss and as the quickest way
