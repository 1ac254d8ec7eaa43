"""Recipes: what is trained, and the size of adapters."""

from __future__ import annotations

import pytest

from tests.planner.build import recipe


@pytest.mark.parametrize(("method", "whole"), [("pretrain", True), ("sft", True), ("lora", False), ("qlora", False)])
def test_adapters_train_without_the_weights(method, whole):
    assert recipe(method=method).trains_all is whole


def test_a_step_trains_batch_times_sequence():
    assert recipe(global_batch=1024, seq_len=4096).tokens_per_step == 2**22


def test_lora_adds_rank_times_in_and_out_of_every_linear_layer():
    # Hu et al. (arXiv 2106.09685): r (d_in + d_out) per matrix; q, k, v, o, gate, up, down of Llama 3.1 8B
    wanted = 16 * (2 * (4096 + 4096) + 2 * (4096 + 1024) + 3 * (4096 + 14336))

    assert recipe("llama-3.1-8b").adapter_params_per_layer == wanted
    assert recipe("llama-3.1-8b", lora_rank=64).adapter_params_per_layer == 4 * wanted


@pytest.mark.parametrize(
    ("stack", "own"), [("tuned", True), ("classic", True), ("fsdp-compile", False), ("eager", False)]
)
def test_megatron_and_its_relatives_bring_their_own_kernels(stack, own):
    assert recipe(stack=stack).fused is own
