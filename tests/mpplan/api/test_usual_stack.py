"""The software of a fine-tuning that nobody chose: that of one node as long as a node holds it with some loss."""

from __future__ import annotations

import pytest

from mpplan.api.answer import estimate_briefly
from reports.text.messages import word

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
    assert "does not hold this run" in word(long.question["loss"].note)
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
