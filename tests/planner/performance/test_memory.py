"""Peak memory against ZeRO, Korthikanti et al. and Megatron's own formulas."""

from __future__ import annotations

from dataclasses import fields, replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.answer.plan import MEMORY_ITEMS
from planner.models.catalogue import find_model
from planner.parallelism.layout import Layout, Layouts
from planner.performance.memory import MemoryItems, in_flight, memory_items, stored_bytes_per_layer
from planner.performance.operations import count_work
from planner.training.optimizers import find_optimizer
from planner.units import GIB
from tests.planner.build import (
    ROUNDING,
    cluster,
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
    one = recipe(gpt(32, 4096, 32), policy, **changes)
    items = memory_items(one, Layouts.of(where), plain_rates())
    return sum(float(np.ravel(getattr(items, name))[0]) for name in STATES) / one.model.params_total


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


S, B, H, A = 2048, 4, 12288, 96


def stored(where: Layout, **changes: object) -> float:
    """Bytes that one layer of GPT-3 keeps, in units of s b h."""
    values: dict[str, object] = {"seq_len": S, "dropout": True, "attention": "flash"}
    one = recipe(gpt(96, H, A), "fp16-megatron", **(values | changes))
    at = Layouts.of(replace(where, micro_batch=B))
    kept, _ = stored_bytes_per_layer(one, count_work(one, at), at, plain_rates())
    return float(np.ravel(kept)[0]) / (S * B * H)


@pytest.mark.parametrize("tp", [1, 2, 8])
def test_activations_of_a_gpt_layer_are_those_of_korthikanti_et_al(tp):
    scores = 5 * A * S / H
    assert scores == 80  # section 4: 5as/h = 80 for GPT-3

    # equation 4, tensor and sequence parallel: sbh/t (34 + 5as/h); with selective recomputation 34 sbh/t
    assert stored(layout(tp=tp), attention="naive") == pytest.approx((34 + scores) / tp)
    assert stored(layout(tp=tp, act_ckpt="selective"), attention="naive") == pytest.approx(34 / tp)
    assert stored(layout(tp=tp), attention="flash") == pytest.approx(34 / tp)
    # equation 2, tensor parallel only: sbh (10 + 24/t + 5as/ht)
    alone = stored(layout(tp=tp), attention="naive", sequence_parallel=False)
    assert alone == pytest.approx(10 + 24 / tp + scores / tp)
    # full recomputation: 2 sbh
    assert stored(layout(tp=tp, act_ckpt="full"), sequence_parallel=False) == pytest.approx(2)
    assert stored(layout(tp=tp, act_ckpt="full")) == pytest.approx(2 / tp)


def test_selective_recomputation_saves_70_percent_on_gpt_3():
    # Korthikanti et al. 2022, section 5; claim c18 says up to 75 %
    saved = 1 - stored(layout(act_ckpt="selective"), attention="naive") / stored(layout(), attention="naive")

    assert saved == pytest.approx(0.70, abs=0.005)


def test_a_llama_layer_with_fused_attention_keeps_its_norms_heads_and_three_inner_activations():
    llama = find_model("llama-3.1-8b")
    one = recipe(llama, seq_len=8192)
    kept, _ = stored_bytes_per_layer(one, count_work(one, layouts()), layouts(), plain_rates())

    # 2 bytes of 4 h + q, k, v + attention output + gate, up and their product
    assert float(kept[0]) == 8192 * 2 * (4 * 4096 + (4096 + 2 * 1024) + 4096 + 3 * 14336)


@pytest.mark.parametrize(
    ("pp", "vp", "micro_batches", "first", "last"),
    [
        (1, 1, 8, 1, 1),
        (4, 1, 16, 4, 1),
        (4, 1, 2, 2, 1),  # fewer micro-batches than stages
        (4, 2, 16, 4 * (1 + 3 / 8), 4 - 3 / 2),  # Megatron's estimator: p (1 + (p - 1) / (p v))
        (8, 4, 64, 8 * (1 + 7 / 32), 8 - 7 / 4),
        (4, 2, 4, 4, 2.5),  # never more than there are
    ],
)
def test_a_pipeline_stage_holds_the_micro_batches_of_its_schedule(pp, vp, micro_batches, first, last):
    at = layouts(pp=pp, vp=vp, grad_accum=micro_batches)

    assert float(in_flight(at)[0]) == pytest.approx(first)
    assert float(in_flight(at, last=True)[0]) == pytest.approx(last)


def schedule(pp: int, vp: int, micro_batches: int, rank: int) -> float:
    """Most micro-batches held by one rank, by running Megatron's interleaved schedule chunk by chunk."""
    total = micro_batches * vp
    warm_up = min((pp - rank - 1) * (2 if vp > 1 else 1) + (vp - 1) * pp, total)
    held = most = warm_up
    for _ in range(total - warm_up):  # steady state: one forward, then one backward
        held += 1
        most = max(most, held)
        held -= 1
    return most / vp


@given(pp=st.integers(2, 16), vp=st.sampled_from((1, 2, 4, 8)), groups=st.integers(1, 6))
def test_in_flight_micro_batches_are_those_of_the_schedule_run_step_by_step(pp, vp, groups):
    at = layouts(pp=pp, vp=vp, grad_accum=groups * pp)

    assert float(in_flight(at)[0]) == pytest.approx(schedule(pp, vp, groups * pp, 0))
    assert float(in_flight(at, last=True)[0]) == pytest.approx(schedule(pp, vp, groups * pp, pp - 1))


def total(one, where: Layout, rates=None) -> float:
    items = memory_items(one, Layouts.of(where), rates or mid_rates(one, cluster()))
    return float(np.ravel(items.total)[0])


def test_gpt_3_states_in_tp_8_pp_8_take_what_was_profiled():
    # 45.56 GiB of weights, gradients and optimizer states were profiled (Calculon's validation data, 175B TP8 PP8 v3)
    one = recipe(gpt(96, 12288, 96), "fp16-megatron", seq_len=2048)
    items = memory_items(one, layouts(tp=8, pp=8, vp=3, grad_accum=64), plain_rates())
    states = sum(float(np.ravel(getattr(items, name))[0]) for name in STATES)

    assert states / GIB == pytest.approx(45.56, rel=0.05)


def test_fp8_saves_next_to_no_memory():
    # torchtitan, Llama 3.1 8B on 8 GPUs, micro-batch 2: 77.0 GiB in BF16, 76.8 GiB in FP8
    where = layout(dp=8, zero=3, micro_batch=2, act_ckpt="selective")
    by_policy = {
        name: total(recipe("llama-3.1-8b", name, seq_len=8192, stack="fsdp-compile"), where)
        for name in ("bf16-fsdp", "fp8-fsdp")
    }

    assert by_policy["fp8-fsdp"] / by_policy["bf16-fsdp"] == pytest.approx(76.8 / 77.0, abs=0.03)


def test_lora_keeps_gradients_and_states_of_the_adapters_only():
    full, lora, qlora = (
        memory_items(recipe("llama-3.1-8b", method=method), layouts(), plain_rates())
        for method in ("sft", "lora", "qlora")
    )
    # rank 16 x (in + out) of q, k, v, o, gate, up, down; 32 layers
    adapters = 32 * 16 * (2 * (4096 + 4096) + 2 * (4096 + 1024) + 3 * (4096 + 14336))
    params = find_model("llama-3.1-8b").params_total

    assert float(lora.gradients[0]) == pytest.approx(4 * adapters)
    assert float(lora.optimizer_states[0]) == pytest.approx(8 * adapters)
    assert float(lora.weights[0]) == float(full.weights[0]) == pytest.approx(2 * params)
    # QLoRA, arXiv 2305.14314, section 3: 0.5 byte and 0.127 bits of constants per parameter
    assert float(qlora.weights[0]) == pytest.approx((4 + 0.127) / 8 * params, rel=1e-3)


def test_the_output_layer_makes_the_last_stage_the_fuller_one_where_the_vocabulary_is_large():
    large = recipe(shape(layers=4, vocab=500_000), seq_len=8192)
    items = memory_items(large, layouts(pp=4, grad_accum=4), plain_rates())
    first = memory_items(large, layouts(pp=4, grad_accum=4, act_ckpt="full"), plain_rates())

    assert float(items.logits[0]) > 0
    assert float(first.logits[0]) > 0


def test_the_first_stage_is_the_fuller_one_where_it_holds_many_micro_batches():
    small = recipe(shape(layers=8, vocab=1000), seq_len=8192)
    items = memory_items(small, layouts(pp=8, grad_accum=8), plain_rates())

    assert float(items.logits[0]) == 0


def test_data_parallel_buckets_hold_the_gradients_a_second_time_where_they_are_not_reduced_in_place():
    # PyTorch, DistributedDataParallel: `gradient_as_bucket_view` saves as much memory as the gradients take
    one = recipe(shape(layers=8), "bf16-autocast", stack="eager")
    alone, shared = (memory_items(one, layouts(dp=n, grad_accum=2), plain_rates()) for n in (1, 8))
    sharded = memory_items(one, layouts(dp=8, grad_accum=2, zero=3), plain_rates())
    in_place = memory_items(replace(one, stack="tuned"), layouts(dp=8, grad_accum=2), plain_rates())

    assert float(alone.gradients[0]) == float(in_place.gradients[0]) == 4 * one.model.params_total
    assert float(shared.gradients[0]) == 8 * one.model.params_total
    assert float(sharded.gradients[0]) == pytest.approx(4 * one.model.params_total / 8)


def test_offloading_takes_the_states_or_the_activations_off_the_gpu():
    base = memory_items(recipe(), layouts(), plain_rates())
    states = memory_items(recipe(offload="optimizer"), layouts(), plain_rates())
    activations = memory_items(recipe(offload="activations"), layouts(), plain_rates())

    assert float(states.master_weights[0]) == float(states.optimizer_states[0]) == 0
    assert float(states.weights[0]) == float(base.weights[0])
    assert float(activations.activations[0]) < 0.15 * float(base.activations[0])


@given(settings_of_recipes())
def test_the_items_are_those_of_the_document_and_sum_to_the_total(setting):
    one, where, machine = setting
    items = memory_items(one, Layouts.of(where), mid_rates(one, machine))
    values = {f.name: float(np.ravel(getattr(items, f.name))[0]) for f in fields(MemoryItems)}

    assert tuple(values) == MEMORY_ITEMS
    assert sum(values.values()) == pytest.approx(float(np.ravel(items.total)[0]), rel=1e-12)
    assert all(value >= 0 for value in values.values())
    # what the allocator holds lies between what is used and what the driver shows
    allocated, reserved = float(np.ravel(items.allocated)[0]), float(np.ravel(items.reserved)[0])
    assert allocated <= reserved * ROUNDING
    assert reserved <= float(np.ravel(items.total)[0]) * ROUNDING


@given(settings_of_recipes())
def test_a_higher_zero_stage_never_keeps_more_states(setting):
    one, where, machine = setting
    rates = mid_rates(one, machine)
    where = replace(where, grad_accum=2)  # with one micro-batch a gradient may take the place of an activation
    taken = []
    for stage in range(4):
        items = memory_items(one, Layouts.of(replace(where, zero=stage, pp=1, vp=1)), rates)
        taken.append(sum(float(np.ravel(getattr(items, name))[0]) for name in STATES))

    assert all(less <= more * ROUNDING for more, less in pairwise(taken))


@given(settings_of_recipes())
def test_a_larger_micro_batch_never_takes_less_memory(setting):
    one, where, machine = setting
    rates = mid_rates(one, machine)

    more = total(one, replace(where, micro_batch=2 * where.micro_batch), rates)
    assert total(one, where, rates) <= more * ROUNDING


@given(settings_of_recipes())
def test_full_checkpointing_never_stores_more_than_selective_and_that_never_more_than_none(setting):
    one, where, machine = setting
    at = Layouts.of(*(replace(where, act_ckpt=kind) for kind in ("full", "selective", "none")))
    kept, _ = stored_bytes_per_layer(one, count_work(one, at), at, mid_rates(one, machine))

    assert all(less <= more * ROUNDING for less, more in pairwise(kept))


@pytest.mark.parametrize(
    ("stack", "policy", "each"),
    [
        ("tuned", "bf16", 0),  # Megatron reduces its buffer in place
        ("eager", "bf16", 4),  # DistributedDataParallel's buckets, in the type of the reduction
        ("classic", "bf16", 2),  # DeepSpeed's flat copy, in the compute type
    ],
)
@pytest.mark.parametrize(
    ("where", "beside_others"),
    [
        ({}, False),
        ({"dp": 2}, True),
        ({"cp": 2}, True),  # context parallel ranks hold the same weights and reduce them too
        ({"dp": 4, "cp": 2, "zero": 1}, True),
        ({"dp": 4, "zero": 2}, False),  # no rank keeps whole gradients
    ],
)
def test_gradients_lie_twice_while_they_are_reduced_whole(stack, policy, each, where, beside_others):
    one = recipe(gpt(8, 1024, 16), policy, stack=stack)
    at = layouts(grad_accum=2, **where)  # accumulated gradients are there all the time
    gradients = float(memory_items(one, at, plain_rates()).gradients[0]) / one.model.params_total

    kept = one.policy.gradient_bytes / (4 if where.get("zero") == 2 else 1)
    assert gradients == pytest.approx(kept + (each if beside_others else 0))


@pytest.mark.parametrize(
    ("policy", "method", "zero", "layers"),
    [
        ("fp16", "pretrain", 0, 8),  # autocast casts each weight once and keeps it
        ("fp16", "lora", 0, 0),  # frozen weights already lie in the compute type
        ("fp16", "pretrain", 3, 2),  # gathered, and dropped again: the layer at work and the next
        ("fp8", "pretrain", 0, 8),  # weights and their transposes
        ("fp8", "lora", 0, 8),  # frozen or not, products take their FP8 copies
        ("fp8", "qlora", 0, 2),  # unpacked from 4 bits layer by layer
        ("bf16", "pretrain", 0, 0),
    ],
)
def test_copies_of_the_linear_weights_in_the_compute_type_take_two_bytes_each(policy, method, zero, layers):
    one = recipe(gpt(8, 1024, 16), policy, method=method)
    items = memory_items(one, layouts(zero=zero, dp=4), plain_rates())

    # policies.csv: 2 bytes per parameter; a layer has 12 h^2 of them
    assert float(np.ravel(items.fp8_copies)[0]) == pytest.approx(layers * 12 * 1024**2 * 2, rel=2e-3)


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
    one = recipe(gpt(8, 1024, 16, vocab=1), update_in_backward=True)
    inside = memory_items(one, layouts(**where), plain_rates())
    after = memory_items(replace(one, update_in_backward=False), layouts(**where), plain_rates())

    # 12 h^2 parameters in a layer, FP32 gradients
    assert float(np.ravel(inside.gradients)[0]) == pytest.approx(4 * 12 * 1024**2 * share, rel=2e-3)
    assert float(np.ravel(after.gradients / inside.gradients)[0]) == pytest.approx(8 / where.get("pp", 1), rel=1e-3)
    others = [name for name in MEMORY_ITEMS if name not in ("gradients", "fragmentation")]
    assert all(np.array_equal(getattr(inside, name), getattr(after, name)) for name in others)


@pytest.mark.parametrize(
    "name",
    ["memory_error_ratio", "memory_stack_error_ratio", "memory_gpu_error_ratio", "memory_shape_error_ratio"],
)
@pytest.mark.parametrize("pp", [1, 2])
def test_what_the_memory_equations_leave_out_stretches_every_item(name, pp):
    one, at = recipe(shape(layers=4)), layouts(dp=8, pp=pp, grad_accum=2, zero=1)
    full = plain_rates(context_bytes=1e9, nccl_bytes=5e8, fragmentation_ratio=0.1)
    plain, off = (memory_items(one, at, rates) for rates in (full, full.replaced(**{name: 1.25})))

    for f in fields(MemoryItems):
        assert float(np.ravel(getattr(off, f.name))[0]) == 1.25 * float(np.ravel(getattr(plain, f.name))[0])
    assert float(np.ravel(off.total)[0]) > 0
