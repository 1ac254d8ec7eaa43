"""Recipes: what is trained, the size of adapters, and what each method costs in FLOP, time and memory."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from planner.performance.compute import head_time, layer_time
from planner.performance.evaluation import UnitPrices, evaluate
from planner.performance.memory import memory_items
from planner.performance.operations import (
    attention_flop_per_token,
    count_work,
    matrix_flop_per_token,
    worked_flop_per_token,
)
from planner.performance.optimizer_step import paging_s
from planner.performance.shards import shard_params, trained_share
from planner.performance.step import step_times
from planner.training.lengths import Lengths
from planner.training.optimizers import find_optimizer
from tests.planner.build import cluster, layouts, mid_rates, plain_rates, recipe, shape

LLAMA = "llama-3.1-8b"
ADAPTERS = 32 * 16 * (2 * (4096 + 4096) + 2 * (4096 + 1024) + 3 * (4096 + 14336))
"""Parameters of rank 16 beside q, k, v, o, gate, up and down of 32 layers: r (d_in + d_out) each (arXiv 2106.09685)."""
NO_PRICES = UnitPrices(usd_per_gpu_h=None, usd_per_kwh=None, pue=1.0, kg_co2e_per_kwh=0.0)


def layer(training, at=None, **rates):
    where = layouts() if at is None else at
    return layer_time(training, count_work(training, where), plain_rates(**rates))


MOVED = {"memory_bytes_per_s": 1e12, "other_flop_per_s": 1e30}
"""Rates at which only what is read and written takes time."""


def flop(method: str, **changes: object) -> float:
    return worked_flop_per_token(recipe(LLAMA, method=method, **changes)) / 1e9


def test_a_token_costs_six_flop_per_trained_parameter_and_four_per_frozen_one():
    training = recipe(LLAMA)
    params, core = training.model.matrix_params_active, attention_flop_per_token(training.model, 4096)

    assert worked_flop_per_token(training) == pytest.approx(6 * params + 3 * core)
    for method in ("lora", "qlora", "dora"):
        tuned = recipe(LLAMA, method=method, stack="eager")
        assert worked_flop_per_token(tuned) == pytest.approx(4 * params + 6 * ADAPTERS + 3 * core)


def test_a_reference_adds_a_forward_pass():
    training = recipe(LLAMA, method="dpo")
    params, core = training.model.matrix_params_active, attention_flop_per_token(training.model, 4096)

    assert worked_flop_per_token(training) == pytest.approx(8 * params + 4 * core)
    tuned = recipe(LLAMA, method="dpo-lora", stack="eager")
    assert worked_flop_per_token(tuned) == pytest.approx(6 * params + 6 * ADAPTERS + 4 * core)


def test_layers_below_the_trained_ones_are_run_forward_only():
    training = recipe(LLAMA, method="freeze", trained_layers=8)
    head = training.model.head_params
    layers = training.model.matrix_params_active - head

    # a quarter of the 32 layers takes 6 instead of 2, the output layer passes its gradient on: 4
    assert matrix_flop_per_token(training) == pytest.approx(3 * layers + 4 * head)
    all_trained = recipe(LLAMA, method="freeze", trained_layers=32)
    assert matrix_flop_per_token(all_trained) == pytest.approx(6 * layers + 4 * head)


@pytest.mark.parametrize("method", ["sft", "lora", "qlora", "dora", "freeze", "dpo", "dpo-lora"])
@pytest.mark.parametrize("gpu", ["rtx-4090", "a100-sxm4-80gb", "h100-sxm5-80gb"])
def test_no_method_is_faster_than_the_hardware(method, gpu):
    training, machines = recipe(LLAMA, method=method, stack="eager", seq_len=2048, global_batch=8), cluster(gpu)
    peak = machines.gpu.peak_flop_per_s["bf16"]
    for ckpt in ("none", "full"):
        at = layouts(micro_batch=4, grad_accum=2, act_ckpt=ckpt)
        step_s = float(step_times(training, machines, at, mid_rates(training, machines)).total[0])
        assert worked_flop_per_token(training) * training.tokens_per_step / step_s < 0.95 * peak


def test_adapters_move_what_enters_and_leaves_the_weights_they_stand_beside():
    training = recipe(shape(), method="lora", stack="eager")
    free, paid = (layer(training, adapter_passes=passes, **MOVED) for passes in (0.0, 4.0))

    # q, k, v, o of 16 and 4 heads of 64, gate, up and down of 2816: inputs and outputs
    sizes = 2 * (1024 + 1024) + 2 * (1024 + 256) + 3 * (1024 + 2816)
    assert float((paid.memory - free.memory)[0]) == pytest.approx(4096 * sizes * 4 * 2 / 1e12)


def test_a_large_rank_takes_the_time_of_its_arithmetic():
    def seconds(rank: int) -> float:
        training = recipe(shape(), method="lora", stack="eager", lora_rank=rank)
        return float(layer(training, memory_bytes_per_s=1e12, adapter_passes=4.0, other_flop_per_s=1e14).memory[0])

    # 6 FLOP for each of r (d_in + d_out) parameters and token, against 8 bytes for each of d_in + d_out
    assert seconds(16) == seconds(128)
    sizes = 2 * (1024 + 1024) + 2 * (1024 + 256) + 3 * (1024 + 2816)
    assert seconds(1024) - seconds(512) == pytest.approx(6 * 512 * sizes * 4096 / 1e14)


def test_adapters_larger_than_the_model_take_their_memory():
    small, large = (trained_share(recipe(LLAMA, method="lora", lora_rank=rank)) for rank in (2048, 4096))

    assert large == 2 * small > 1.0


def test_adapters_beside_fewer_weights_cost_less_time_and_memory():
    def cost(targets: str) -> tuple[float, float, float]:
        training = recipe(shape(), method="lora", lora_targets=targets)
        time = float(layer(training, memory_bytes_per_s=1e12, adapter_passes=4.0).memory[0])
        kept = float(np.ravel(memory_items(training, layouts(micro_batch=8), plain_rates()).activations)[0])
        return training.adapter_params_per_layer, time, kept

    everywhere, attention, two = cost("all-linear"), cost("attention"), cost("qv")
    assert everywhere > attention > two


def test_the_norm_of_weight_and_adapter_passes_over_the_whole_weight_once_forward():
    lora, dora = (
        layer(recipe(shape(), method=method, stack="eager"), **MOVED, magnitude_passes=6.0)
        for method in ("lora", "dora")
    )
    weights = 2 * 1024 * 1024 + 2 * 1024 * 256 + 3 * 1024 * 2816

    assert float((dora.memory - lora.memory)[0]) == pytest.approx(6 * weights * 2 / 1e12)
    assert float((dora.memory_forward - lora.memory_forward)[0]) == pytest.approx(6 * weights * 2 / 1e12)


def test_expert_parallel_ranks_share_out_the_norms_of_routed_experts_alone():
    model = shape(experts=8, top_k=2, expert_ffn=2816)
    alone, eight = (
        layer(recipe(model, method="dora", stack="eager"), layouts(dp=8, ep=ep), **MOVED, magnitude_passes=6.0)
        for ep in (1, 8)
    )
    expert = 3 * 1024 * 2816

    # seven of eight experts less, and as much of attention as without expert parallelism
    assert float((alone.memory - eight.memory)[0]) == pytest.approx(6 * 7 * expert * 2 / 1e12)


def test_a_reference_is_run_forward_beside_what_learns():
    alone, paired = (layer(recipe(shape(), method=method)) for method in ("sft", "dpo"))

    assert float(paired.matmul[0]) == pytest.approx(float(alone.matmul[0]) * 4 / 3)
    assert float(paired.attention[0]) == pytest.approx(float((alone.attention + alone.attention_forward)[0]))
    heads = [
        head_time(training, count_work(training, layouts()), plain_rates())
        for training in (recipe(shape(), method="sft"), recipe(shape(), method="dpo"))
    ]
    assert float(heads[1].matmul[0]) == pytest.approx(float(heads[0].matmul[0]) * 4 / 3)


def test_where_all_weights_learn_the_reference_lies_beside_them_and_without_adapters_it_is_the_model():
    def weights(method: str) -> float:
        return float(np.ravel(memory_items(recipe(shape(), method=method), layouts(), plain_rates()).weights)[0])

    assert weights("dpo") == 2 * weights("sft")  # 2 bytes each, in the compute type
    assert weights("dpo-lora") == weights("lora")
    assert weights("dpo-qlora") == weights("qlora")


def test_the_scales_of_four_bit_weights_take_half_a_bit_or_an_eighth():
    model = shape(vocab=1)
    once, twice = (
        float(np.ravel(memory_items(training, layouts(), plain_rates()).weights)[0]) / model.params_total
        for training in (recipe(model, method="qlora", double_quant=False), recipe(model, method="qlora"))
    )

    assert once == pytest.approx(0.5625, rel=2e-3)  # 4 bits, and 32 for each 64
    assert twice == pytest.approx(0.516, rel=2e-3)


def test_frozen_weights_in_fp8_need_no_copy_of_16_bits():
    def total(policy: str) -> float:
        training = recipe(LLAMA, policy, method="lora", stack="tuned")
        items = memory_items(training, layouts(act_ckpt="full"), plain_rates())
        return float(np.ravel(items.weights + items.fp8_copies)[0])

    assert total("fp8") == pytest.approx(total("bf16"))  # FP8 twice, for it and its transpose, or BF16 once


def test_the_share_that_learns_is_that_of_the_last_layers():
    training = recipe(shape(), method="freeze", trained_layers=2)
    ends = training.model.embedding_params + training.model.head_params

    assert trained_share(training) == pytest.approx(0.25 * (1 - ends / training.model.params_total))


def test_padding_costs_the_tokens_of_the_longest_example_and_memory_those_of_the_longest_of_all():
    full = recipe(LLAMA, method="lora", seq_len=2048, global_batch=16)
    padded = replace(full, lengths=Lengths.around(400, 2048))
    at = layouts(micro_batch=4, grad_accum=4)
    assert padded.lengths is not None

    tokens = [float(count_work(training, at).tokens[0]) for training in (full, padded)]
    assert tokens[0] == 4 * 2048
    assert tokens[1] == pytest.approx(4 * float(padded.lengths.longest_of(4)))
    needed = [float(np.ravel(memory_items(training, at, plain_rates()).total)[0]) for training in (full, padded)]
    assert needed[0] == needed[1]
    assert padded.tokens_per_step == pytest.approx(16 * 400, rel=1e-3)


def test_packing_is_faster_per_token_than_padding_and_no_padding_is_as_fast():
    machines, at = cluster("a100-sxm4-80gb"), layouts(micro_batch=4, grad_accum=4, act_ckpt="full")
    packed = recipe(LLAMA, "bf16-pure", method="lora", seq_len=2048, global_batch=16, stack="eager")
    rates = mid_rates(packed, machines)

    def speed(lengths: Lengths | None) -> float:
        training = replace(packed, lengths=lengths)
        step_s = float(step_times(training, machines, at, rates).total[0])
        return training.tokens_per_step / step_s

    # torchtune on an A100 (published_runs.csv, tune-0014 and tune-0016): 2,091 tokens/s unpacked, 7,075 packed
    assert speed(None) > 1.5 * speed(Lengths.around(400, 2048))
    assert speed(Lengths.around(2048, 2048)) == pytest.approx(speed(None), rel=1e-6)


def test_paged_states_are_fetched_only_where_they_find_no_room():
    training = recipe(LLAMA, "bf16-pure", method="sft", optimizer=find_optimizer("adamw-8bit-paged"))
    at, rates = layouts(), plain_rates(pcie_bytes_per_s=1e10)
    states = training.model.params_total * 2.03125

    def seconds(room: float) -> float:
        return float(np.ravel(paging_s(training, shard_params(training, at), at, 1e10, room, rates))[0])

    assert seconds(1e10 + states) == pytest.approx(0.0, abs=1e-6)
    assert seconds(1e10 + states - 1e9) == pytest.approx(2 * 1e9 / 1e10)
    assert seconds(1e10) == pytest.approx(2 * states / 1e10)


def test_a_run_of_examples_whose_length_was_assumed_scales_with_it():
    machines = cluster()
    training = recipe(LLAMA, method="lora", global_batch=8, lengths_assumed=True)
    at, rates = layouts(micro_batch=2, grad_accum=4, act_ckpt="full"), mid_rates(training, machines)
    once, thrice = (
        evaluate(training, machines, at, rates.replaced(example_length_ratio=ratio), NO_PRICES, 1e8)
        for ratio in (1.0, 3.0)
    )

    assert float(thrice.busy_s[0]) == pytest.approx(3 * float(once.busy_s[0]))
    assert float(thrice.tokens_per_s_per_gpu[0]) == float(once.tokens_per_s_per_gpu[0])


@pytest.mark.parametrize(("method", "whole"), [("pretrain", True), ("sft", True), ("lora", False), ("qlora", False)])
def test_adapters_train_without_the_weights(method, whole):
    assert recipe(method=method).trains_all is whole


def test_a_step_trains_batch_times_sequence():
    assert recipe(global_batch=1024, seq_len=4096).tokens_per_step == 2**22


def test_lora_adds_rank_times_in_and_out_of_every_linear_layer():
    # Hu et al. (arXiv 2106.09685): r (d_in + d_out) per matrix; q, k, v, o, gate, up, down of Llama 3.1 8B
    wanted = 16 * (2 * (4096 + 4096) + 2 * (4096 + 1024) + 3 * (4096 + 14336))

    def adapters(**changes: object) -> float:
        return recipe("llama-3.1-8b", method="lora", **{"stack": "eager"} | changes).adapter_params_per_layer

    assert adapters() == wanted
    assert adapters(lora_rank=64) == 4 * wanted
    # Megatron's fused q, k, v and gate, up have one adapter each: their inputs count once
    assert adapters(stack="tuned") == wanted - 16 * 3 * 4096
    assert recipe("llama-3.1-8b").adapter_params_per_layer == 0


@pytest.mark.parametrize(
    ("stack", "own"), [("tuned", True), ("classic", True), ("fsdp-compile", False), ("eager", False)]
)
def test_megatron_and_its_relatives_bring_their_own_kernels(stack, own):
    assert recipe(stack=stack).fused is own
