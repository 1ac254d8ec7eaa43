"""The update: bytes per parameter, Muon's arithmetic, offloading."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from planner.models.catalogue import find_model
from planner.parallelism.layout import Layouts
from planner.performance.activations import stored_bytes_per_layer
from planner.performance.model_states import updated_params
from planner.performance.operations import count_work, model_flop_per_token
from planner.performance.optimizer_step import (
    offload_s,
    optimizer_s,
    smaller_dimension,
    update_bytes_per_param,
)
from planner.performance.shards import shard_params
from planner.training.optimizers import find_optimizer
from tests.planner.build import cluster, gpt, layout, plain_rates, recipe


def parts(training, where):
    at = Layouts.of(where)
    return shard_params(training, at), at


@pytest.mark.parametrize(
    ("policy", "expected"),
    [
        # gradient read for its norm, read and cleared (3 x 4), master weights and two moments read and written
        # (2 x 4 + 2 x 8), the compute copy written (2)
        ("bf16", 3 * 4 + 2 * 4 + 2 * 8 + 2),
        ("fp32", 3 * 4 + 2 * 4 + 2 * 8),
        ("fp16", 3 * 4 + 2 * 4 + 2 * 8 + 2 * 4),  # unscaling and the overflow check
        ("bf16-pure", 3 * 2 + 2 * 2 + 2 * 4),
    ],
)
def test_an_update_moves_its_states_in_and_out(policy, expected):
    assert update_bytes_per_param(recipe(policy=policy)) == expected


def test_the_update_of_a_gpu_is_its_zero_shard_at_memory_rate():
    training = recipe(gpt(24, 2048, 16))
    rates = plain_rates(optimizer_bytes_per_s=1e12, step_overhead_s=0.01)
    for stage, share in ((0, 1), (1, 64), (3, 64)):
        shards, at = parts(training, layout(dp=64, zero=stage))
        expected = training.model.params_total / share * 38 / 1e12 + 0.01
        assert float(optimizer_s(training, shards, at, rates)[0]) == pytest.approx(expected)


def test_lora_updates_the_adapters():
    training = recipe("llama-3.1-8b", method="lora")
    shards, at = parts(training, layout())

    assert float(updated_params(shards, at)[0]) == pytest.approx(32 * training.adapter_params_per_layer)


def test_muon_s_overhead_is_that_of_its_author():
    # K. Jordan, Muon: T m / B of the training FLOP with T = 5 steps; Llama 405B: 5 x 16384 / 16M tokens = 0.5 %
    model = find_model("llama-3.1-405b")
    training = recipe(model, optimizer=find_optimizer("muon"), seq_len=8192, global_batch=16_000_000 // 8192)
    shards, at = parts(training, layout())
    rates = plain_rates(optimizer_bytes_per_s=1e30, other_flop_per_s=1.0)
    muon = float(optimizer_s(training, shards, at, rates)[0])

    six_n = 6 * model.params_total * 16e6
    assert muon / six_n == pytest.approx(5 * 16384 / 16e6, rel=0.01)
    assert muon < 0.01 * 16e6 * model_flop_per_token(model, 8192)


def test_the_smaller_side_of_a_matrix_is_the_hidden_size_or_an_expert_s():
    assert smaller_dimension(find_model("llama-3.1-8b")) == 4096
    assert smaller_dimension(find_model("deepseek-v3")) == 2048


HOST = {"pcie_bytes_per_s": 25e9, "host_memory_bytes_per_s": 240e9, "host_process_bytes_per_s": 80e9}


def offload(training, where, busy_s: float = 0.0, **rates: float) -> float:
    shards, at = parts(training, where)
    work, known = count_work(training, at), plain_rates(**(HOST | rates))
    busy = np.array([busy_s])
    return float(np.ravel(offload_s(training, cluster(), shards, at, work, busy, shards.layers_most, known))[0])


def test_nothing_moves_without_offload():
    assert offload(recipe(), layout()) == 0


def test_offloaded_states_move_gradients_down_and_weights_up_and_update_in_host_memory():
    training = recipe(gpt(24, 2048, 16), offload="optimizer")
    params = training.model.params_total

    # 4 bytes of gradient, 2 of weight over the link; 38 bytes of update at what one process reaches (80 GB/s)
    assert offload(training, layout()) == pytest.approx(params * 6 / 25e9 + params * 38 / 80e9)
    # an eighth of the parameters at an eighth of the server's 240 GB/s
    assert offload(training, layout(dp=8, zero=1)) == pytest.approx(params / 8 * (6 / 25e9 + 38 / 30e9))
    # two nodes of eight
    assert offload(training, layout(dp=16, zero=1)) == pytest.approx(params / 16 * (6 / 25e9 + 38 / 30e9))


def test_gradients_that_are_accumulated_on_the_gpu_go_down_once():
    training = recipe(gpt(24, 2048, 16), offload="optimizer")

    for zero in (0, 1):
        assert offload(training, layout(dp=8, zero=zero, grad_accum=16)) == offload(training, layout(dp=8, zero=zero))


@pytest.mark.parametrize("zero", [2, 3])
@pytest.mark.parametrize("stack", ["classic", "fsdp-compile"])
def test_reduced_gradients_of_every_micro_batch_go_to_the_host(stack, zero):
    training = recipe(gpt(24, 2048, 16), offload="optimizer", stack=stack)
    shard, m = training.model.params_total / 8, 4
    offload_time_s = offload(training, layout(dp=8, zero=zero, grad_accum=m))

    gathers = zero == 3 and stack != "classic"  # FSDP fetches its 2 bytes of weight twice a micro-batch
    weights_s = shard * 2 * (2 * m if gathers else 1) / 25e9
    # DeepSpeed takes the sum up to add to it; FSDP reads two and writes one in host memory
    gradients_s = shard * 4 * (2 * m - 1) / 25e9 if stack == "classic" else shard * 4 * (m / 25e9 + (m - 1) * 3 / 30e9)
    assert offload_time_s == pytest.approx(weights_s + gradients_s + shard * 38 / 30e9)


def freezing(trained_layers: int, kept_in_host: str):
    return recipe(
        "llama-3.1-8b", method="freeze", trained_layers=trained_layers, offload=kept_in_host, stack="fsdp-compile"
    )


def test_activations_of_layers_that_are_not_run_backward_are_not_moved():
    quarter, whole = (offload(freezing(layers, "activations"), layout(dp=8, zero=3)) for layers in (8, 32))

    assert quarter / whole == pytest.approx(8 / 32)


@pytest.mark.parametrize("trained_layers", [8, 32])
def test_weights_come_from_the_host_again_for_the_layers_that_are_run_backward(trained_layers):
    training, where = freezing(trained_layers, "optimizer"), layout(dp=8, zero=3)
    moved_bytes = offload(
        training, where, pcie_bytes_per_s=1.0, host_memory_bytes_per_s=1e30, host_process_bytes_per_s=1e30
    )
    gradient_bytes = 4 * float(np.ravel(updated_params(*parts(training, where)))[0])

    # two bytes a weight, once forward and once for each layer that learns
    assert moved_bytes - gradient_bytes == pytest.approx(
        training.model.params_total / 8 * 2 * (1 + trained_layers / 32)
    )


def test_compute_hides_what_moves_beside_it_and_neither_the_update_nor_what_a_host_adds():
    training = recipe(gpt(24, 2048, 16), offload="optimizer", stack="fsdp-compile")
    shard = training.model.params_total / 8
    offload_time_s = offload(training, layout(dp=8, zero=3, grad_accum=4), busy_s=1e3)

    assert offload_time_s == pytest.approx(shard * (3 * 4 / 25e9 + 3 * 12 / 30e9 + 38 / 30e9))


def test_a_larger_share_of_a_host_never_slows_an_update():
    training = recipe(gpt(24, 2048, 16), offload="optimizer")
    by_sharing = [offload(training, layout(dp=dp, zero=0)) for dp in (1, 2, 4, 8)]

    assert by_sharing == sorted(by_sharing)
    assert by_sharing[3] > 2 * by_sharing[0]


@pytest.mark.parametrize("ckpt", ["none", "selective", "full"])
def test_offloaded_activations_move_all_that_is_stored_there_and_back(ckpt):
    training = recipe(gpt(24, 2048, 16), offload="activations")
    at = Layouts.of(layout(act_ckpt=ckpt, grad_accum=4))
    kept, _ = stored_bytes_per_layer(training, count_work(training, at), at, plain_rates())
    moved_s = 2 * float(kept[0]) * 24 * 4 / 25e9

    assert offload(training, layout(act_ckpt=ckpt, grad_accum=4)) == pytest.approx(moved_s)
    # behind 80 % of the compute
    assert offload(training, layout(act_ckpt=ckpt, grad_accum=4), busy_s=moved_s) == pytest.approx(0.2 * moved_s)
    assert offload(training, layout(act_ckpt=ckpt, grad_accum=4), busy_s=2 * moved_s) == 0


def test_the_gpu_does_not_update_what_the_host_updates():
    rates = plain_rates(optimizer_bytes_per_s=1e12)
    training = recipe(gpt(24, 2048, 16))
    shards, at = parts(training, layout())

    assert float(np.ravel(optimizer_s(replace(training, offload="optimizer"), shards, at, rates))[0]) == 0
