"""Sizes of linear-attention layers, against the models' own weights."""

from __future__ import annotations

import numpy as np

from planner.models.catalogue import find_model
from planner.models.linear_attention import LinearAttention
from planner.models.shape import ModelShape


def linear_of(name: str) -> tuple[ModelShape, LinearAttention]:
    model = find_model(name)
    assert model.linear is not None
    return model, model.linear


def test_mamba_2_has_one_product_into_gate_values_keys_queries_and_time_steps():
    model, linear = linear_of("nemotron-3-nano")

    # Nemotron-3-Nano: 64 heads of 64, 8 groups, a state of 128; `in_proj.weight` of [10304, 2688]
    assert (linear.inner, linear.keys, linear.outputs) == (4096, 1024, 10_304)
    assert linear.matrix_params(model.hidden) == 10_304 * 2688 + 4096 * 2688
    # `conv1d` of 6144 channels over 4 tokens with a bias; `A_log`, `D`, `dt_bias` of 64 each; `norm.weight` of 4096
    assert linear.vector_params == 6144 * 5 + 3 * 64 + 4096


def test_the_gated_delta_rule_has_two_numbers_per_head_beside():
    _, linear = linear_of("qwen3-next")

    # Qwen3-Next: `in_proj_qkvz` of 2 x 16 x 128 + 2 x 32 x 128 outputs, `in_proj_ba` of 2 x 32
    assert linear.outputs == 12_288 + 64


def test_the_gated_delta_rule_has_no_skip_no_bias_and_one_norm_for_all_heads():
    _, linear = linear_of("qwen3-next")

    # transformers, `Qwen3NextGatedDeltaNet`: `conv1d` of 2 x 16 x 128 + 32 x 128 channels over 4 tokens without a bias;
    # `dt_bias` and `A_log` of 32 each; `norm.weight` of 128
    assert linear.vector_params == 8192 * 4 + 2 * 32 + 128


def test_the_scan_is_counted_as_the_recurrence_that_it_is():
    _, linear = linear_of("nemotron-h-56b")

    # 256 heads of 64 with a state of 256: decay, outer product and sum, product with the query; 7 FLOP for each element
    assert linear.scan_flop == 7 * 256 * 64 * 256


def test_a_norm_without_weights_has_none():
    sizes = {"layers": 1, "key_heads": 1, "key_dim": 64, "value_heads": 8, "value_dim": 64}
    with_norm, without = LinearAttention(**sizes), LinearAttention(**sizes, gated_norm=False)

    assert with_norm.vector_params - without.vector_params == 8 * 64


ONE = {"layers": 1, "key_heads": 1, "key_dim": 16, "value_heads": 1024, "value_dim": 1, "head_inputs": 0}
MAMBA_1 = LinearAttention(**ONE, step_rank=32, gated_norm=False)
KIMI = LinearAttention(
    layers=1, key_heads=8, key_dim=128, value_heads=8, value_dim=128, head_inputs=1, gates=0, gate_rank=128
)
CONVOLUTION = LinearAttention(**ONE | {"key_dim": 0}, gates=2, convolution=3, gated_norm=False)


def test_mamba_1_makes_its_keys_and_time_steps_from_its_values():
    # hidden 512, expanded to 1024: `in_proj` 512 to 2048, `x_proj` 1024 to 32 + 2 x 16, `dt_proj` 32 to 1024, and back
    assert MAMBA_1.matrix_params(512) == 512 * 2048 + 1024 * 64 + 32 * 1024 + 1024 * 512
    # `conv1d` of 1024 channels over 4 tokens with a bias; `A_log` of [1024, 16]; `D` and a bias of `dt_proj`
    assert MAMBA_1.vector_params == 1024 * 5 + 1024 * 16 + 2 * 1024
    assert MAMBA_1.heads_to_split == 1024  # every channel by itself, though all of them share their keys


def test_kimis_gates_come_through_a_small_rank_that_every_tensor_parallel_rank_has():
    products = [tuple(float(size) for size in sizes) for sizes in KIMI.products(512, np.float64(2.0))]

    # q, k, v and beta: 3 x 1024 + 8 outputs, halved; down to 128 and up to the decays of the keys, and to the gate
    assert products == [(1540, 512), (128, 512), (512, 128), (128, 512), (512, 128), (512, 512)]
    assert KIMI.heads_to_split == 8
    assert KIMI.further_values == 1024 + 1024


def test_a_short_convolution_has_two_gates_and_no_scan():
    assert CONVOLUTION.outputs == 3 * 1024
    # a gate, three taps of two FLOP, and a gate, for each of 1024 channels
    assert CONVOLUTION.scan_flop == (1 + 3 * 2 + 1) * 1024
    assert not CONVOLUTION.scans
    assert MAMBA_1.scans
