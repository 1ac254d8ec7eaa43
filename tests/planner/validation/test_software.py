"""What a row says of its software, and what its blank cells mean."""

from __future__ import annotations

from dataclasses import replace

import pytest

from planner.hardware.catalogue import find_gpu
from planner.models.catalogue import find_model
from planner.training.frameworks import find_framework
from planner.training.method import find_method
from planner.validation.defaults import Filled
from planner.validation.model import CannotPredictError
from planner.validation.runs import PublishedRun
from planner.validation.software import framework_of, loss_of, mtp_layers_of, policy_of, software_of

H100 = find_gpu("h100-sxm5-80gb")
RUN = PublishedRun(
    id="r", metric="step_time_s", gpu=H100.id, model="llama-3-8b", precision="bf16", framework="Hugging Face"
)


def policy(run: PublishedRun) -> str:
    return policy_of(run, framework_of(run, H100), H100, Filled()).id


def test_a_policy_of_the_row_stands_before_that_of_the_framework():
    assert policy(RUN) == "bf16-autocast"
    assert policy(replace(RUN, policy="bf16-pure")) == "bf16-pure"


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("bf17", "policy: `bf17` is no policy; those of bf16 are bf16, bf16-bf16-grad, bf16-autocast"),
        ("fp8-rowwise", "policy: `fp8-rowwise` is not of the row's precision bf16; those of bf16 are bf16, "),
    ],
)
def test_a_policy_that_is_none_or_of_another_precision_is_refused_with_those_there_are(name, why):
    with pytest.raises(CannotPredictError) as caught:
        policy(replace(RUN, policy=name))

    assert str(caught.value.args[0]).startswith(why)


@pytest.mark.parametrize(
    ("framework", "cells", "loss"),
    [
        ("Hugging Face", {}, "full"),
        ("Hugging Face", {"loss": "fused"}, "fused"),
        ("Hugging Face", {"fused_loss": "y"}, "chunked"),
        ("Hugging Face", {"fused_loss": "y", "loss": "fused"}, "fused"),
        ("torchtune", {}, "chunked"),
        ("torchtune", {"fused_loss": "y"}, "chunked"),
        ("unsloth", {}, "fused"),
        ("unsloth", {"fused_loss": "yes"}, "fused"),
        ("unsloth", {"fused_loss": "n"}, "full"),
        ("unsloth", {"loss": "chunked", "fused_loss": "y"}, "chunked"),
        ("unsloth", {"loss": "full"}, "full"),
    ],
)
def test_the_loss_is_the_row_s_or_else_the_framework_s(framework, cells, loss):
    assert loss_of(replace(RUN, **cells), find_framework(framework)) == loss


@pytest.mark.parametrize(
    ("mtp_layers", "method", "stack", "modules"),
    [(None, "pretrain", "tuned", 1), (None, "pretrain", "eager", 0), (None, "sft", "tuned", 0),
     (0, "pretrain", "tuned", 0), (2, "pretrain", "eager", 2)],
)  # fmt: skip
def test_modules_of_multi_token_prediction_are_the_row_s_or_else_the_usual_ones(mtp_layers, method, stack, modules):
    run, model = replace(RUN, mtp_layers=mtp_layers), find_model("deepseek-v3")

    assert mtp_layers_of(run, model, find_method(method), stack) == modules


def test_blank_cells_mean_what_framework_and_model_have():
    megatron = replace(RUN, model="deepseek-v3", framework="Megatron-Core", precision="fp8")
    blank = software_of(megatron, H100)
    stated = software_of(replace(megatron, mtp_layers=0, policy="fp8-rowwise"), H100)

    assert (blank.policy, blank.loss, blank.attention, blank.mtp_layers) == ("fp8-delayed", "full", "flash", 1)
    assert (stated.policy, stated.mtp_layers) == ("fp8-rowwise", 0)
