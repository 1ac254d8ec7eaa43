"""Compressed gradients: bytes on the wire, time of coding, memory of residuals, and which layouts are left."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from planner.models.image_network import Convolution
from planner.models.images.catalogue import load_image_models
from planner.parallelism.layout import Layouts
from planner.performance.communication import data_parallel
from planner.performance.compression import coding_s, residual_bytes, sent_bytes
from planner.performance.shards import shard_params
from planner.training.grad_compression import load_grad_compressions
from planner.training.policies import find_policy
from tests.planner.build import cluster, gpt, layout, plain_rates, recipe, shape

WAYS = load_grad_compressions()


def compressed(name: str | None, **changes):
    how = None if name is None else WAYS[name]
    return replace(recipe(gpt(4, 1024, 16), global_batch=64), grad_compression=how, **changes)


def at(**changes: int) -> Layouts:
    return Layouts.of(layout(**changes))


def test_without_compression_a_gradient_is_sent_in_its_type():
    training = compressed(None)

    assert sent_bytes(training, at(dp=8)) == training.policy.reduce_bytes
    assert coding_s(training, 1e9, plain_rates()) == 0.0
    assert residual_bytes(training, 1e9, at(dp=8)) == 0.0


def test_fp8_sends_a_byte_and_one_bit_a_bit_after_the_warm_up():
    assert sent_bytes(compressed("fp8"), at(dp=8)) == 1.0
    element = compressed("1bit").policy.reduce_bytes
    assert sent_bytes(compressed("1bit"), at(dp=8)) == pytest.approx(0.15 * element + 0.85 / 8)


def test_two_factors_stand_for_a_matrix():
    # one convolution of 64 outputs that reads 64 x 9 inputs: rank 4 sends 4 (64 + 576) of 64 x 576 numbers
    kind = load_image_models()["resnet50"].network
    only = Convolution(inputs=64, outputs=64, groups=1, taps=9, pixels=1.0, input_pixels=1.0, count=3)
    network = replace(kind, convolutions=(only,), products=())
    training = compressed("powersgd")

    share = 4 * (64 + 576) / (64 * 576)
    element = training.policy.reduce_bytes
    # 10 % of the steps whole
    assert sent_bytes(training, at(dp=8), network) == pytest.approx(element * (0.1 + 0.9 * share))
    twice = replace(training, grad_compression=replace(WAYS["powersgd"], rank=8))
    assert sent_bytes(twice, at(dp=8), network) == pytest.approx(element * (0.1 + 0.9 * 2 * share))


def test_wider_models_compress_further_and_split_matrices_less():
    training = compressed("powersgd")
    wide = replace(training, model=gpt(4, 4096, 32))
    narrow, split = float(sent_bytes(training, at(dp=8))[0]), float(sent_bytes(training, at(dp=8, tp=8))[0])

    assert float(sent_bytes(wide, at(dp=8))[0]) < narrow < split < training.policy.reduce_bytes
    # about 4 (1/n + 1/m) of the numbers, with n and m of 1024 and more
    assert narrow < training.policy.reduce_bytes * (0.1 + 4 * 2 / 1024)


def test_every_expert_parallel_rank_sends_the_factors_of_shared_experts():
    # one routed expert on each of 64 ranks, and the sixteen shared ones on every rank, where they are one feed-forward
    model = shape(experts=64, top_k=2, expert_ffn=128, shared_experts=16, ffn_hidden=0)
    training = compressed("powersgd", model=model)
    hidden, layers, vocab = 1024, 8, 32000
    matrices = [
        (4 * layers, hidden, model.attention_params / (4 * hidden)),
        (3 * layers, hidden, 128),
        (3 * layers, hidden, 16 * 128),
        (2, hidden, vocab),
    ]
    factors = sum(count * 4 * (rows + columns) for count, rows, columns in matrices)
    share = factors / sum(count * rows * columns for count, rows, columns in matrices)

    element = training.policy.reduce_bytes
    assert sent_bytes(training, at(dp=64, ep=64))[0] == pytest.approx(element * (0.1 + 0.9 * share))


def test_coding_is_bound_by_memory():
    rates, element = plain_rates(memory_bytes_per_s=1e12), compressed("fp8").policy.reduce_bytes

    assert coding_s(compressed("fp8"), 1e9, rates) == pytest.approx(1e9 * (5 * element + 2) / 1e12)
    # 43 passes in FP32 over the momentum, whatever the gradients are
    assert coding_s(compressed("1bit"), 1e9, rates) == pytest.approx(0.85 * 1e9 * 43 * 4 / 1e12)


def test_what_was_not_sent_is_kept_where_there_is_somebody_to_send_to():
    training = compressed("powersgd")

    assert residual_bytes(training, 1e9, at(dp=8)) == pytest.approx(1e9 * training.policy.reduce_bytes)
    assert residual_bytes(training, 1e9, at(dp=1)) == 0.0
    assert residual_bytes(compressed("fp8"), 1e9, at(dp=8)) == 0.0
    assert residual_bytes(compressed("1bit", policy=find_policy("fp16-zero")), 1e9, at(dp=8)) == 4e9


@pytest.mark.parametrize("zero", [0, 1])
def test_compressed_gradients_are_all_reduced_under_zero_1_too(zero):
    training, where = compressed("fp8"), at(dp=8, zero=zero)
    rates = plain_rates(nvlink_bytes_per_s=1e11, nic_bytes_per_s=1e11)
    parts = data_parallel(training, cluster(), shard_params(training, where), where, 1.0, rates).transfers
    kinds = [transfer.operation for transfer in parts if float(np.ravel(transfer.times)[0]) > 0]

    assert kinds == ["all_reduce"] + ["all_gather"] * zero


def test_the_factors_go_one_after_the_other():
    where, rates = at(dp=8), plain_rates(nvlink_bytes_per_s=1e11)
    plain, twice = (
        data_parallel(training, cluster(), shard_params(training, where), where, 1.0, rates).transfers[0].messages
        for training in (compressed(None), compressed("powersgd"))
    )

    assert np.ravel(twice)[0] == 2 * np.ravel(plain)[0]


def test_time_of_the_step_holds_the_coding_but_none_without_other_ranks():
    training, rates = (
        compressed("fp8"),
        plain_rates(nvlink_bytes_per_s=1e30, nic_bytes_per_s=1e30, memory_bytes_per_s=1e9),
    )
    alone, many = (
        float(
            np.ravel(
                data_parallel(training, cluster(), shard_params(training, at(dp=dp)), at(dp=dp), 1.0, rates).total_s
            )[0]
        )
        for dp in (1, 8)
    )

    assert alone == 0.0
    assert many == pytest.approx(
        float(np.ravel(coding_s(training, shard_params(training, at(dp=8)).dense(last=False), rates))[0])
    )
