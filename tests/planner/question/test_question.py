"""A resolved question makes the recipe of each precision on each GPU."""

from __future__ import annotations

import pytest

from planner.hardware.catalogue import find_gpu
from planner.question.question import default_attention, overlaps_tensor_parallel
from tests.planner.build import cluster, make_question


@pytest.mark.parametrize(
    ("gpu", "asked", "kind"),
    [
        ("v100-sxm2-32gb", {}, "naive"),
        ("t4", {"stack": "tuned"}, "naive"),
        ("t4", {"stack": "eager"}, "flash"),
        ("v100-sxm2-32gb", {"method": "qlora"}, "flash"),
        ("a100-sxm4-80gb", {}, "flash"),
        ("h100-sxm5-80gb", {"stack": "classic"}, "flash"),
        ("l4", {}, "flash"),
    ],
)
def test_attention_is_fused_from_ampere_on_and_before_where_pytorch_s_kernel_runs(gpu, asked, kind):
    # FlashAttention-2's README: Ampere, Ada and Hopper; PyTorch's memory-efficient kernel: older parts as well
    question = make_question(**asked)

    assert default_attention(question.stack, find_gpu(gpu), fine_tunes=question.fine_tunes) == kind
    assert question.recipe(question.policy, cluster(gpu)).attention == kind


def test_what_the_user_said_wins():
    asked = make_question(attention="naive")

    assert asked.recipe(asked.policy, asked.clusters[0]).attention == "naive"


def test_tuned_stacks_hide_tensor_parallel_traffic_from_hopper_on():
    assert overlaps_tensor_parallel("tuned", find_gpu("h100-sxm5-80gb"))
    assert overlaps_tensor_parallel("tuned", find_gpu("b200-sxm-180gb"))
    assert not overlaps_tensor_parallel("tuned", find_gpu("a100-sxm4-80gb"))
    assert not overlaps_tensor_parallel("eager", find_gpu("h100-sxm5-80gb"))


def test_only_encoders_drop_out():
    bert, llama = (make_question(model=name) for name in ("bert-large", "llama-3.1-8b"))

    assert bert.recipe(bert.policy, bert.clusters[0]).dropout
    assert not llama.recipe(llama.policy, llama.clusters[0]).dropout
