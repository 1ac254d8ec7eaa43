"""Peak memory: what is live at once, and whether it fits."""

from __future__ import annotations

from dataclasses import fields, replace

import numpy as np
import pytest
from hypothesis import given

from planner.answer.plan import MEMORY_ITEMS
from planner.parallelism.layout import Layout, Layouts
from planner.performance.memory import (
    MemoryItems,
    fits_probability,
    memory_items,
    memory_range_gib,
    memory_risk,
    peak_bytes,
)
from planner.rates.ladder import resolve_rates
from planner.rates.terms import Draws
from planner.training.optimizers import find_optimizer
from planner.training.policies import find_policy
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


def total(training, where: Layout, rates=None) -> float:
    items = memory_items(training, Layouts.of(where), rates or mid_rates(training, cluster()))
    return float(np.ravel(items.total)[0])


def test_fp8_saves_next_to_no_memory():
    # torchtitan, Llama 3.1 8B on 8 GPUs, micro-batch 2: 77.0 GiB in BF16, 76.8 GiB in FP8
    where = layout(dp=8, zero=3, micro_batch=2, act_ckpt="selective")
    by_policy = {
        name: total(recipe("llama-3.1-8b", name, seq_len=8192, stack="fsdp-compile"), where)
        for name in ("bf16-fsdp", "fp8-fsdp")
    }

    assert by_policy["fp8-fsdp"] / by_policy["bf16-fsdp"] == pytest.approx(76.8 / 77.0, abs=0.03)


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


def test_offloading_takes_the_states_or_the_activations_off_the_gpu():
    base = memory_items(recipe(), layouts(), plain_rates())
    states = memory_items(recipe(offload="optimizer"), layouts(), plain_rates())
    activations = memory_items(recipe(offload="activations"), layouts(), plain_rates())

    assert float(states.master_weights[0]) == float(states.optimizer_states[0]) == 0
    assert float(states.weights[0]) == float(base.weights[0])
    assert float(activations.activations[0]) < 0.15 * float(base.activations[0])


@given(settings_of_recipes())
def test_the_items_are_those_of_the_document_and_sum_to_the_total(setting):
    training, where, machine = setting
    items = memory_items(training, Layouts.of(where), mid_rates(training, machine))
    values = {f.name: float(np.ravel(getattr(items, f.name))[0]) for f in fields(MemoryItems)}

    assert tuple(values) == MEMORY_ITEMS
    assert sum(values.values()) == pytest.approx(float(np.ravel(items.total)[0]), rel=1e-12)
    assert all(value >= 0 for value in values.values())
    # what the allocator holds lies between what is used and what the driver shows
    allocated, reserved = float(np.ravel(items.allocated)[0]), float(np.ravel(items.reserved)[0])
    assert allocated <= reserved * ROUNDING
    assert reserved <= float(np.ravel(items.total)[0]) * ROUNDING


@given(settings_of_recipes())
def test_the_peak_alone_is_the_total_of_the_items(setting):
    training, where, machine = setting
    for draws in (None, Draws(count=11, seed=0)):
        rates = resolve_rates(machine, training).sample(draws)

        total = memory_items(training, Layouts.of(where), rates).total
        assert peak_bytes(training, Layouts.of(where), rates) == pytest.approx(total, rel=1e-12)


@given(settings_of_recipes())
def test_a_larger_micro_batch_never_takes_less_memory(setting):
    training, where, machine = setting
    rates = mid_rates(training, machine)

    more = total(training, replace(where, micro_batch=2 * where.micro_batch), rates)
    assert total(training, where, rates) <= more * ROUNDING


@pytest.mark.parametrize(("policy", "left"), [("bf16-pure", 0.0), ("bf16", 4.0)])
def test_without_accumulation_gradients_take_the_place_of_freed_activations_unless_they_have_a_buffer(policy, left):
    training = recipe(gpt(8, 1024, 16), policy, seq_len=16384, stack="eager")
    items = memory_items(training, layouts(dp=4, zero=2), plain_rates())

    # FP32 sums, sharded over 4 ranks; 16-bit gradients are far smaller than the activations
    assert float(items.gradients[0]) == pytest.approx(left / 4 * training.model.params_total)


def test_fp8_lora_on_one_gpu_takes_less_than_a_gibibyte_more_than_bf16():
    where = layout(micro_batch=2, act_ckpt="full")
    training = recipe("llama-3.1-8b", method="lora", stack="eager", seq_len=2048)
    more = total(replace(training, policy=find_policy("fp8")), where) - total(training, where)

    # casts of two layers, 2 x 218 million parameters in both layouts: 0.81 GiB, and their fragmentation
    assert 0.0 <= more / GIB < 1.0


def test_a_loss_fused_with_the_output_layer_never_holds_all_logits():
    rates, where = plain_rates(logit_stored_bytes=4.0), layouts(micro_batch=8, act_ckpt="full")

    def logits(**loss: bool) -> float:
        training = recipe("llama-3.1-8b", "bf16-pure", method="sft", seq_len=2048, stack="fsdp-compile", **loss)
        return float(np.ravel(memory_items(training, where, rates).logits)[0])

    whole = 8 * 2048 * 128_256 * 4.0
    assert logits(chunked_loss=True) == pytest.approx(whole)
    # 128,256 / 4,096 = 31.3: 32 chunks of tokens, which are less than what the last layer needs then
    assert logits(chunked_loss=True, fused_head=True) in (0.0, pytest.approx(whole / 32))


@pytest.mark.parametrize(
    ("stack", "loss", "more"),
    [("eager", {}, 0.0), ("classic", {}, 0.0), ("fsdp-compile", {}, 2.0), ("eager", {"chunked_loss": True}, 2.0)],
)
def test_logits_in_fp32_are_not_copied_to_fp32(stack, loss, more):
    def of_logit(policy: str) -> float:
        training = recipe(shape(layers=1, vocab=512_000), policy, stack=stack, **loss)
        items = memory_items(training, layouts(act_ckpt="full"), plain_rates(logit_stored_bytes=12.0))
        return float(np.ravel(items.logits)[0]) / (4096 * 512_000)

    assert of_logit("bf16-pure") == 12.0
    assert of_logit("fp32") == 12.0 + more


def test_updates_inside_backward_fit_a_full_7b_with_paged_states_on_a_24_gb_card():
    # torchtune's README: 18.9 GiB allocated for Llama 3.1 8B, batch 2 of 2,048 tokens, paged 8-bit Adam
    training = recipe(
        "llama-3.1-8b", "bf16-pure", method="sft", seq_len=2048, stack="fsdp-compile", chunked_loss=True,
        update_in_backward=True, optimizer=find_optimizer("adamw-8bit-paged"),
    )  # fmt: skip
    items = memory_items(training, layouts(micro_batch=2, act_ckpt="full"), plain_rates(logit_stored_bytes=4.0))

    assert float(np.ravel(items.optimizer_states)[0]) == 0.0  # moved to the host to make room
    # 2 bytes of 8.03e9 parameters; 32 layers' inputs of 4,096 tokens x 4,096; 4 bytes of 4,096 x 128,256 logits
    expected = 2 * 8.03e9 + 32 * 4096 * 4096 * 2 + 4 * 4096 * 128_256
    assert float(np.ravel(items.allocated)[0]) == pytest.approx(expected, rel=1e-3)
    assert expected / GIB == pytest.approx(18.9, rel=0.06)


@pytest.mark.parametrize(
    ("vocab", "logits", "working"),
    [
        (512_000, 4096 * 512_000, 0.0),  # the loss: 2.1 GB of logits
        (1000, 0.0, 1.0),  # the backward pass of the last layer: a quarter of what it keeps
    ],
)
def test_the_loss_and_the_backward_pass_of_a_layer_do_not_meet(vocab, logits, working):
    training = recipe(shape(layers=8, vocab=vocab))
    items = memory_items(training, layouts(), plain_rates())
    # 4 h, q, k, v, attention's output, three inner tensors: 2 bytes each
    layer = 4096 * 2 * (4 * 1024 + 1024 + 2 * 256 + 1024 + 3 * 2816)

    assert float(np.ravel(items.logits)[0]) == logits
    assert float(np.ravel(items.activations)[0]) == (8 + 0.25 * working) * layer


def test_the_probability_of_fitting_is_the_share_of_draws_within_what_the_driver_leaves():
    gpu = cluster().gpu  # 81,559 MiB, of which a process gets 79.1 GiB
    draws = np.array([40.0, 79.0, 79.2, 100.0]) * GIB

    assert fits_probability(draws, gpu) == 0.5
    assert memory_risk(draws, gpu) == 0.5
    assert (fits_probability(79.0 * GIB, gpu), fits_probability(79.2 * GIB, gpu)) == (1.0, 0.0)


def test_the_range_of_the_memory_is_that_of_its_draws():
    memory_gib = memory_range_gib(np.array([*range(101), 52.0]) * GIB)

    assert (memory_gib.low, memory_gib.mid, memory_gib.high) == pytest.approx((5.05, 52.0, 94.95))


@pytest.mark.parametrize(
    "name",
    ["memory_error_ratio", "memory_stack_error_ratio", "memory_architecture_error_ratio", "memory_shape_error_ratio"],
)
@pytest.mark.parametrize("pp", [1, 2])
@pytest.mark.parametrize("method", ["pretrain", "sft"])
def test_what_the_memory_equations_leave_out_stretches_every_item_but_loaded_weights(name, pp, method):
    training, at = recipe(shape(layers=4), method=method), layouts(dp=8, pp=pp, grad_accum=2, zero=1)
    full = plain_rates(context_bytes=1e9, nccl_bytes=5e8, fragmentation_ratio=0.1)
    plain, off = (memory_items(training, at, rates) for rates in (full, full.replaced(**{name: 1.25})))

    for f in fields(MemoryItems):
        stretched = 1.0 if (method, f.name) == ("sft", "weights") else 1.25  # loaded from a file of known size
        assert float(np.ravel(getattr(off, f.name))[0]) == stretched * float(np.ravel(getattr(plain, f.name))[0])
    assert float(np.ravel(off.total)[0]) > 0
