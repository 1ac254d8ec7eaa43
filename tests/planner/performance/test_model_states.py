"""Model states against ZeRO and Megatron's own formulas, and the copies of parameters that come and go."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given

from planner.answer.plan import MEMORY_ITEMS
from planner.models.catalogue import find_model
from planner.parallelism.layout import Layout, Layouts
from planner.performance.memory import memory_items
from planner.performance.model_states import gradient_copies, offloaded_bytes, states, step_gradients, updated_params
from planner.performance.shards import shard_params
from planner.training.optimizers import find_optimizer
from planner.units import GIB
from tests.planner.build import (
    ROUNDING,
    gpt,
    layout,
    layouts,
    mid_rates,
    plain_rates,
    recipe,
    settings_of_recipes,
    shape,
)

STATES = ("weights", "gradients", "master_weights", "optimizer_states")


def state_bytes_per_param(policy: str, where: Layout, **changes: object) -> float:
    """Bytes of model states on one GPU, per parameter of the whole model."""
    training = recipe(gpt(32, 4096, 32), policy, **changes)
    items = memory_items(training, Layouts.of(where), plain_rates())
    return sum(float(np.ravel(getattr(items, name))[0]) for name in STATES) / training.model.params_total


@pytest.mark.parametrize(("stage", "gigabytes"), [(0, 120.0), (1, 31.4), (2, 16.6), (3, 1.9)])
def test_a_7_5b_model_on_64_gpus_takes_what_the_zero_paper_says(stage, gigabytes):
    # Rajbhandari et al. 2020, figure 1: Psi = 7.5B, N = 64, K = 12, FP16 weights and gradients
    taken = 7.5e9 * state_bytes_per_param("fp16-zero", layout(dp=64, zero=stage))

    assert taken / 1e9 == pytest.approx(gigabytes, abs=0.05)


@pytest.mark.parametrize("ranks", [2, 8, 64])
@pytest.mark.parametrize(
    ("policy", "kept", "sharded"),
    [("bf16", 6, 12), ("fp8", 6, 12), ("fp32", 8, 8), ("tf32", 8, 8)],
)
def test_the_distributed_optimizer_takes_megatron_s_bytes(policy, kept, sharded, ranks):
    # Megatron-LM docs, distributed optimizer: BF16 with FP32 gradients 18, 6 + 12/d; FP32 16, 8 + 8/d
    assert state_bytes_per_param(policy, layout()) == pytest.approx(kept + sharded)
    assert state_bytes_per_param(policy, layout(dp=ranks, zero=1)) == pytest.approx(kept + sharded / ranks)


@pytest.mark.parametrize(
    ("policy", "bytes_per_param"),
    [("fp32", 16), ("tf32", 16), ("fp16", 16), ("bf16", 18), ("fp8", 18), ("bf16-fsdp", 16), ("bf16-pure", 8)],
)
def test_each_policy_keeps_the_bytes_of_the_design(policy, bytes_per_param):
    assert state_bytes_per_param(policy, layout()) == pytest.approx(bytes_per_param)
    assert state_bytes_per_param(policy, layout(dp=16, zero=3)) == pytest.approx(bytes_per_param / 16)


@pytest.mark.parametrize(
    ("optimizer", "bytes_per_param"),
    [
        ("adamw", 8),
        ("sgd-momentum", 4),
        ("muon", 4),
        ("lamb", 8),
        ("adafactor", 0),
        ("adamw-8bit", 2.03125),  # two bytes and an FP32 scale for 256 of each (Dettmers et al. 2022)
    ],
)
def test_each_optimizer_keeps_its_own_states(optimizer, bytes_per_param):
    chosen = find_optimizer(optimizer)

    assert state_bytes_per_param("fp32", layout(), optimizer=chosen) == pytest.approx(4 + 4 + bytes_per_param)


def test_ten_billion_parameters_in_pure_bf16_go_from_80_to_20_gb_on_four_gpus():
    # claim c20: 10B from 80 GB to 20 GB per device, 75 % saved
    assert 10 * state_bytes_per_param("bf16-pure", layout()) == pytest.approx(80)
    assert 10 * state_bytes_per_param("bf16-pure", layout(dp=4, zero=3)) == pytest.approx(20)


def test_gpt_3_states_in_tp_8_pp_8_take_what_was_profiled():
    # 45.56 GiB of weights, gradients and optimizer states were profiled (Calculon's validation data, 175B TP8 PP8 v3)
    training = recipe(gpt(96, 12288, 96), "fp16-megatron", seq_len=2048)
    items = memory_items(training, layouts(tp=8, pp=8, vp=3, grad_accum=64), plain_rates())
    states = sum(float(np.ravel(getattr(items, name))[0]) for name in STATES)

    assert states / GIB == pytest.approx(45.56, rel=0.05)


def test_lora_keeps_gradients_and_states_of_the_adapters_only():
    full, lora, qlora = (
        memory_items(recipe("llama-3.1-8b", method=method), layouts(), plain_rates())
        for method in ("sft", "lora", "qlora")
    )
    # rank 16 x (in + out) of Megatron's qkv, o, gate with up, down; 32 layers
    adapters = 32 * 16 * ((4096 + 6144) + (4096 + 4096) + (4096 + 2 * 14336) + (14336 + 4096))
    params = find_model("llama-3.1-8b").params_total

    assert float(lora.gradients[0]) == pytest.approx(4 * adapters)
    assert float(lora.optimizer_states[0]) == pytest.approx(8 * adapters)
    assert float(lora.weights[0]) == float(full.weights[0]) == pytest.approx(2 * params)
    # QLoRA, arXiv 2305.14314, section 3: 0.5 byte and 0.127 bits of constants per parameter of the linear layers;
    # embedding and output layer, 128,256 x 4,096 each, stay in 16 bits
    ends = 2 * 128_256 * 4096
    assert float(qlora.weights[0]) == pytest.approx((4 + 0.127) / 8 * (params - ends) + 2 * ends, rel=1e-3)


@pytest.mark.parametrize(("policy", "each"), [("bf16-autocast", 4), ("bf16-fsdp", 4), ("bf16", 4), ("bf16-pure", 2)])
def test_adapters_are_kept_in_32_bits_unless_nothing_is(policy, each):
    tuned = recipe("llama-3.1-8b", policy, method="lora", lora_rank=16, stack="eager")
    at = layouts()
    adapters = 16 * 32 * (2 * (4096 + 4096) + 2 * (4096 + 1024) + 3 * (4096 + 14336))

    items = states(tuned, shard_params(tuned, at), at, last=False)
    assert float(items.master_weights[0]) == pytest.approx(each * adapters)
    assert float(items.gradients[0]) == pytest.approx(each * adapters)


@pytest.mark.parametrize("ep", [1, 8, 32])
@pytest.mark.parametrize("targets", ["attention", "mlp", "all-linear"])
def test_experts_share_out_their_own_adapters_alone(targets, ep):
    tuned = recipe("qwen3-235b-a22b", method="lora", lora_rank=64, lora_targets=targets, stack="eager")
    at = layouts(dp=ep, ep=ep)
    hidden, heads, kv_heads, head, inner, experts, layers = 4096, 64, 4, 128, 1536, 128, 94
    attention = (hidden + heads * head) * 2 + (hidden + kv_heads * head) * 2
    mlp = 3 * (hidden + inner) * experts / ep
    beside = {"attention": attention, "mlp": mlp, "all-linear": attention + mlp}[targets]

    updated = updated_params(shard_params(tuned, at), at)
    assert float(updated[0]) == pytest.approx(64 * layers * beside, rel=1e-6)


def test_data_parallel_buckets_hold_the_gradients_a_second_time_where_they_are_not_reduced_in_place():
    # PyTorch, DistributedDataParallel: `gradient_as_bucket_view` saves as much memory as the gradients take
    training = recipe(shape(layers=8), "bf16-autocast", stack="eager")
    alone, shared = (memory_items(training, layouts(dp=n, grad_accum=2), plain_rates()) for n in (1, 8))
    sharded = memory_items(training, layouts(dp=8, grad_accum=2, zero=3), plain_rates())
    in_place = memory_items(replace(training, stack="tuned"), layouts(dp=8, grad_accum=2), plain_rates())

    assert float(alone.gradients[0]) == float(in_place.gradients[0]) == 4 * training.model.params_total
    assert float(shared.gradients[0]) == 8 * training.model.params_total
    assert float(sharded.gradients[0]) == pytest.approx(4 * training.model.params_total / 8)


@given(settings_of_recipes())
def test_a_higher_zero_stage_never_keeps_more_states(setting):
    training, where, machine = setting
    rates = mid_rates(training, machine)
    where = replace(where, grad_accum=2)  # with one micro-batch a gradient may take the place of an activation
    taken = []
    for stage in range(4):
        items = memory_items(training, Layouts.of(replace(where, zero=stage, pp=1, vp=1)), rates)
        taken.append(sum(float(np.ravel(getattr(items, name))[0]) for name in STATES))

    assert all(less <= more * ROUNDING for more, less in pairwise(taken))


SHARED = ({"dp": 2}, {"cp": 2})
"""Context parallel ranks hold the same weights and reduce them too."""


@pytest.mark.parametrize(
    ("stack", "policy", "where", "copies"),
    [
        *[("tuned", "bf16", where, 0) for where in ({}, *SHARED)],  # Megatron sums and reduces in its buffer
        ("eager", "bf16", {}, 2),  # 16-bit gradients beside the FP32 ones that they are added to
        *[("eager", "bf16", where, 2 + 2) for where in SHARED],  # and DistributedDataParallel's buckets
        ("eager", "bf16", {"dp": 4, "cp": 2, "zero": 1}, 2),
        ("eager", "bf16-autocast", {}, 0),  # FP32 gradients from autograd
        ("eager", "bf16-autocast", {"dp": 2}, 4),
        ("eager", "bf16-pure", {"dp": 2}, 2),
        ("classic", "bf16", {}, 2),
        ("classic", "bf16", {"dp": 2}, 2 + 2),  # DeepSpeed's buckets hold up to 1e9 elements: here all
        ("classic", "fp16-zero", {"dp": 2, "zero": 1}, 2),
        ("eager", "bf16", {"dp": 4, "zero": 2}, 0),  # no rank keeps whole gradients
    ],
)
def test_gradients_lie_beside_the_accumulated_ones_until_they_are_summed_and_reduced(stack, policy, where, copies):
    training = recipe(gpt(8, 1024, 16), policy, stack=stack)
    at = layouts(grad_accum=2, **where)  # accumulated gradients are there all the time
    gradients = float(memory_items(training, at, plain_rates()).gradients[0]) / training.model.params_total

    kept = training.policy.gradient_bytes / (4 if where.get("zero") == 2 else 1)
    assert gradients == pytest.approx(kept + copies)


def test_deepspeed_s_buckets_hold_a_billion_elements_at_most():
    # two of 500 million (configuration: `reduce_bucket_size`, `allgather_bucket_size`), 2 bytes each
    training = recipe("llama-2-13b", "fp16-zero", stack="classic")
    held = [
        gradient_copies(training, shard_params(training, at), at, last=False)
        for at in (layouts(), layouts(dp=16, zero=1))
    ]

    assert [float(np.ravel(copies)[0]) for copies in held] == [0.0, 2e9]


@pytest.mark.parametrize(
    ("policy", "method", "zero", "layers"),
    [
        ("fp16", "pretrain", 0, 8),  # autocast casts each weight once and keeps it
        ("fp16", "lora", 0, 0),  # frozen weights already lie in the compute type
        ("fp16", "pretrain", 3, 0),  # cast before they are gathered
        ("fp8", "pretrain", 0, 8),  # Transformer Engine keeps weights and their transposes
        ("fp8", "lora", 0, 0),  # frozen, they lie in FP8 themselves
        ("bf16", "qlora", 0, 1 / 3),  # unpacked from 4 bits one product at a time: at most 4 h^2
        ("bf16", "pretrain", 0, 0),
    ],
)
def test_copies_of_the_linear_weights_in_the_compute_type_take_two_bytes_each(policy, method, zero, layers):
    training = recipe(gpt(8, 1024, 16, vocab=1000), policy, method=method)
    items = memory_items(training, layouts(zero=zero, dp=4), plain_rates())

    # policies.csv: 2 bytes per parameter; a layer has 12 h^2 of them
    assert float(np.ravel(items.fp8_copies)[0]) == pytest.approx(layers * 12 * 1024**2 * 2, rel=2e-3)


@pytest.mark.parametrize("method", ["sft", "lora"])
def test_torchao_casts_a_weight_to_fp8_when_it_is_used_and_keeps_no_copy(method):
    # torchao `Float8Linear`: the original is saved for the backward pass and cast again
    training = recipe(gpt(8, 1024, 16, vocab=1000), "fp8", method=method, stack="fsdp-compile")
    items = memory_items(training, layouts(), plain_rates())

    assert float(np.ravel(items.fp8_copies)[0]) == pytest.approx(2 * 12 * 1024**2 * 2, rel=2e-3)


@pytest.mark.parametrize(
    ("where", "share"),
    [
        ({}, 1.0),
        ({"pp": 2, "grad_accum": 2}, 1.0),  # four layers on a stage, and still the gradients of one
        ({"dp": 4, "zero": 2}, 0.25),
        ({"dp": 4, "zero": 1}, 1.0),
    ],
)
def test_an_optimizer_that_steps_inside_the_backward_pass_holds_the_gradients_of_one_layer(where, share):
    # PyTorch tutorial, "How to save memory by fusing the optimizer step into the backward pass"
    training = recipe(gpt(8, 1024, 16, vocab=1), update_in_backward=True)
    inside = memory_items(training, layouts(**where), plain_rates())
    after = memory_items(replace(training, update_in_backward=False), layouts(**where), plain_rates())

    # 12 h^2 parameters in a layer, FP32 gradients
    assert float(np.ravel(inside.gradients)[0]) == pytest.approx(4 * 12 * 1024**2 * share, rel=2e-3)
    assert float(np.ravel(after.gradients / inside.gradients)[0]) == pytest.approx(8 / where.get("pp", 1), rel=1e-3)
    others = [name for name in MEMORY_ITEMS if name not in ("gradients", "fragmentation")]
    assert all(np.array_equal(getattr(inside, name), getattr(after, name)) for name in others)


@pytest.mark.parametrize(("stack", "kept"), [("fsdp-compile", 0.0), ("classic", 2.0)])
def test_fsdp_offloads_its_parameters_with_the_optimizer_and_deepspeed_keeps_them(stack, kept):
    # PyTorch `CPUOffloadPolicy`; DeepSpeed `offload_optimizer`
    training = recipe("llama-3.1-70b", "bf16-pure", stack=stack, offload="optimizer")
    items = memory_items(training, layouts(dp=8, zero=3), plain_rates())

    assert float(np.ravel(items.weights)[0]) == pytest.approx(kept * training.model.params_total / 8)
    # ZeRO-Offload: a reduced gradient moves to the host; that of the largest unit is under way, and DeepSpeed's buckets
    unit = 2 * (2 * 128_256 * 8192) / 8
    buckets = 2e9 if stack == "classic" else 0.0
    assert 0.0 <= float(np.ravel(items.gradients)[0]) - buckets <= unit


@pytest.mark.parametrize(("method", "on_one"), [("sft", 0.0), ("lora", 16.06e9), ("qlora", 5.7e9)])
def test_one_gpu_has_no_shards_of_frozen_weights_to_move_to_the_host(method, on_one):
    tuned = recipe("llama-3.1-8b", "bf16-fsdp", method=method, stack="eager", offload="optimizer")
    alone, two = (memory_items(tuned, layouts(dp=dp, zero=3), plain_rates()) for dp in (1, 2))

    assert float(np.ravel(alone.weights)[0]) == pytest.approx(on_one, rel=0.02)
    assert float(np.ravel(two.weights)[0]) == 0.0


@pytest.mark.parametrize(
    ("method", "each"),
    [
        ("sft", 2.0 + 4.0 + 2.0),  # weights, 16-bit moments and gradients
        ("lora", 2.0),  # frozen weights; adapters are next to nothing
        ("dpo", 2.0 + 4.0 + 2.0 + 2.0),  # and the weights it began with
    ],
)
def test_what_lies_in_host_memory_holds_the_weights_that_fsdp_moves_there(method, each):
    training = recipe("llama-3.1-70b", "bf16-pure", method=method, stack="hf", offload="optimizer")
    held = float(np.ravel(offloaded_bytes(training, layouts(dp=8, zero=3)))[0])

    assert held * 8 == pytest.approx(each * training.model.params_total, rel=0.02)
    # DeepSpeed's optimizer offload, and FSDP where every GPU holds all weights, keep them on the GPU
    for kept in (replace(training, stack="classic"), training):
        beside = float(np.ravel(offloaded_bytes(kept, layouts(dp=8, zero=3 if kept is not training else 0)))[0])
        assert beside < (8 if kept is training else 1) * held


def test_four_bit_weights_are_cast_to_fp8_one_product_at_a_time():
    training = recipe("llama-3.1-70b", "fp8-fsdp", method="qlora", stack="hf", seq_len=8192)
    copies = memory_items(training, layouts(dp=8, zero=3, act_ckpt="full"), plain_rates()).fp8_copies

    product = 8192 * 28_672
    assert float(np.ravel(copies)[0]) == pytest.approx((training.policy.low_weight_copy_bytes + 2) * product)


def test_a_gathered_layer_of_qlora_is_gathered_in_four_bits():
    training = recipe("llama-3.1-70b", "bf16-pure", method="qlora")
    items = memory_items(training, layouts(dp=8, zero=3, micro_batch=4), plain_rates(logit_stored_bytes=4.0))

    # while the loss is computed: the output layer of 128,256 x 8,192 in 16 bits, one layer of 855.7e6 parameters
    assert float(np.ravel(items.logits)[0]) > 0
    assert float(np.ravel(items.gathered_params)[0]) == pytest.approx(2 * 128_256 * 8192 + 0.516 * 855.65e6, rel=1e-3)


def test_fsdp_holds_the_unreduced_gradient_of_a_large_output_layer_with_few_tokens():
    training = recipe("gemma-2-9b", "bf16-fsdp", stack="fsdp-compile", seq_len=128)
    items = memory_items(training, layouts(dp=8, zero=3, grad_accum=4), plain_rates(logit_stored_bytes=6.0))

    # 256,000 x 3,584 gathered in 16 bits with its gradient in FP32, and a layer gathered ahead
    head, each_layer = 256_000 * 3584, 198.2e6
    assert float(np.ravel(items.gathered_params)[0]) == pytest.approx(6 * head + 2 * each_layer, rel=1e-3)
    assert float(np.ravel(items.logits)[0]) == 2 * 128 * 256_000  # of the logits, only their 16-bit gradient is left


def test_fsdp_gathers_a_layer_with_all_of_its_experts_where_only_every_second_has_them():
    training = recipe("llama-4-maverick", "bf16-fsdp", stack="fsdp-compile", seq_len=128)
    items = memory_items(training, layouts(dp=64, zero=3, grad_accum=4), plain_rates(logit_stored_bytes=6.0))

    # 128 experts of 3 x 5120 x 8192 in 16 bits, and their gradients in FP32; beside them the layer before, without any
    experts = 128 * 3 * 5120 * 8192
    dense = float(np.ravel(shard_params(training, layouts(dp=64, zero=3)).dense_per_layer)[0])
    assert float(np.ravel(items.gathered_params)[0]) == pytest.approx(6 * experts + 8 * dense)


@pytest.mark.parametrize(
    ("stack", "policy", "ranks", "each"),
    [
        ("classic", "fp16-zero", 1, 4.0),  # whole FP32 gradients beside the 16-bit ones
        ("classic", "fp16-zero", 8, 4.0 / 8),  # of this rank's partition
        ("classic", "bf16", 1, 0.0),  # summed in FP32 already
        ("tuned", "fp16-zero", 1, 0.0),
    ],
)
def test_deepspeed_casts_its_partition_of_the_gradients_to_fp32_for_the_update(stack, policy, ranks, each):
    # DeepSpeed, `runtime/zero/stage_1_and_2.py`: `single_grad_partition`
    training = recipe(gpt(8, 1024, 16), policy, stack=stack)
    at = layouts(dp=ranks, zero=1 if ranks > 1 else 0)

    cast = step_gradients(training, shard_params(training, at), at, last=False)
    assert float(np.ravel(cast)[0]) == pytest.approx(each * training.model.params_total)


def test_what_the_update_casts_takes_the_place_of_the_activations():
    training = recipe(gpt(8, 1024, 16, vocab=1000), "fp16-zero", stack="classic")
    few, many = (memory_items(replace(training, seq_len=n), layouts(grad_accum=2), plain_rates()) for n in (64, 16384))
    params = training.model.params_total

    assert float(many.gradients[0]) == pytest.approx(2 * params)  # fewer bytes than the activations that are gone
    assert float(few.gradients[0] + few.activations[0]) == pytest.approx((2 + 4) * params)
