"""Sizes of linear-attention layers, against the models' own weights."""

from __future__ import annotations

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
