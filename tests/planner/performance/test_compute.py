"""Times of matrix products, attention and memory-bound work, by hand."""

from __future__ import annotations

from dataclasses import fields, replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.kernels.catalogue import load_surface
from planner.kernels.surface import attention_s, large_flop_per_s
from planner.models.catalogue import find_model
from planner.models.linear_attention import LinearAttention
from planner.parallelism.layout import Layouts
from planner.performance.compute import attention_time, head_time, launches_per_layer, layer_time
from planner.performance.operations import count_work
from planner.rates.terms import Rates
from tests.planner.build import ROUNDING, gpt, layouts, mid_rates, plain_rates, recipe, settings_of_recipes, shape

FAST = 1e30
"""A rate at which something takes no time."""


def compute_bound(rate: float = 1e12, **changes: float) -> Rates:
    """Only FLOP take time."""
    free = {"operand_bytes_per_s": FAST, "memory_bytes_per_s": FAST, "attention_flop_per_s": rate}
    return plain_rates(**({"linear_flop_per_s": rate, "other_flop_per_s": rate} | free | changes))


def layer(training, **changes: float):
    at = layouts()
    return layer_time(training, count_work(training, at), compute_bound(**changes))


@pytest.mark.parametrize(("method", "passes"), [("pretrain", 3), ("sft", 3), ("lora", 2), ("qlora", 2)])
def test_backward_is_two_products_and_one_for_frozen_weights(method, passes):
    # LoRA about 4N: forward and input gradient of the frozen weights
    times = layer(recipe("llama-3.1-8b", method=method))
    per_layer = find_model("llama-3.1-8b").layer_params_dense

    assert float(times.matmul_forward[0]) == pytest.approx(2 * 4096 * per_layer / 1e12)
    assert float(times.matmul[0]) == pytest.approx(passes * float(times.matmul_forward[0]))


def test_fused_attention_runs_backward_in_two_and_a_half_times_its_forward():
    # FlashAttention's own benchmark: 4 x S^2 x heads x d forward, halved when causal, backward 2.5 of it
    times = layer(recipe("llama-3.1-8b"))

    assert float(times.attention_forward[0]) == pytest.approx(4 * 4096**2 * 32 * 128 / 2 / 1e12)
    assert float(times.attention[0]) == pytest.approx(3.5 * float(times.attention_forward[0]))


H100 = load_surface("attention:h100-sxm5-80gb:bf16")


def measured_attention(training, at, **changes: float):
    """Attention on a surface, in a step that slows nothing down."""
    rates = {"attention_flop_per_s": large_flop_per_s(H100), "memory_bytes_per_s": FAST}
    return attention_time(
        training, count_work(training, at), plain_rates({"attention_flop_per_s": H100}, **rates | changes)
    )


def test_measured_attention_takes_what_its_surface_says_at_the_heads_and_sequences_of_a_gpu():
    # 32 heads of 128 over 2 tensor parallel ranks, 4 sequences: 64 heads over 4096 tokens, causal
    times = measured_attention(recipe("llama-3.1-8b"), layouts(tp=2, micro_batch=4), attention_backward_ratio=0.8)
    forward = attention_s(H100, 64 * 2 * 4096**2 * 128, 128, 64, 4096)

    assert float(times.forward[0]) == pytest.approx(float(forward))
    assert float(times.total[0]) == pytest.approx(float(forward) * (1 + 2.5 / 0.8))


def test_under_context_parallelism_each_chunk_of_keys_is_a_kernel_of_its_own():
    # 8192 tokens over 4 ranks: each meets 4 chunks of 2048 tokens, an eighth of the square in all
    times = measured_attention(recipe("llama-3.1-8b", seq_len=8192), layouts(cp=4))

    assert float(times.forward[0]) == pytest.approx(4 * float(attention_s(H100, 32 * 2 * 2048**2 * 128, 128, 32, 2048)))


def test_results_of_further_chunks_are_added_to_a_running_sum():
    # 2048 of 8192 tokens, 3 further chunks, 10 bytes: 32 heads of 128 forward, beside them 32 + 2 x 8 backward
    at, training = layouts(cp=4), recipe("llama-3.1-8b", seq_len=8192)
    free, paid = (measured_attention(training, at, memory_bytes_per_s=rate) for rate in (FAST, 1e12))

    assert float((paid.forward - free.forward)[0]) == pytest.approx(3 * 10 * 2048 * 32 * 128 / 1e12)
    assert float((paid.total - free.total)[0]) == pytest.approx(3 * 10 * 2048 * (32 + 32 + 16) * 128 / 1e12)


def test_attention_is_as_much_slower_than_its_surface_as_a_large_one_is():
    training, at = recipe("llama-3.1-8b"), layouts()
    half = measured_attention(training, at, attention_flop_per_s=large_flop_per_s(H100) / 2)

    assert float(half.total[0]) == pytest.approx(2 * float(measured_attention(training, at).total[0]))


def test_windows_and_encoders_run_at_the_rate_of_a_causal_sequence_with_as_many_keys():
    window = recipe(shape(sliding_window=512, global_attention_every=1), seq_len=8192)
    encoder = recipe(shape(kind="encoder"), seq_len=512)

    # a query meets 512 - 512^2 / (2 x 8192) = 496 keys; in an encoder all 512
    assert float(count_work(window, layouts()).attention_length[0]) == pytest.approx(992)
    assert float(count_work(encoder, layouts()).attention_length[0]) == pytest.approx(1024)


def test_naive_attention_computes_the_square_and_moves_the_scores():
    training = recipe(gpt(24, 2048, 16), attention="naive", seq_len=2048)
    times = layer(training)
    moving = layer(
        training, memory_bytes_per_s=1e12, score_passes=10.0, norm_passes=0.0, ffn_passes=0.0, qkv_passes=0.0
    )

    assert float(times.attention_forward[0]) == pytest.approx(4 * 2048**2 * 2048 / 1e12)
    assert float(times.attention[0]) == pytest.approx(3 * float(times.attention_forward[0]))
    scores_s = 10 * 2048**2 * 16 * 2 / 1e12
    weights_s = 12 * 2048**2 * 2 * 4 / 1e12  # gradients of 12 h^2 weights read and written in FP32
    assert float(moving.memory[0]) == pytest.approx(scores_s + weights_s)
    assert float(moving.scores_forward[0]) == pytest.approx(0.4 * scores_s)
    assert float(moving.memory_forward[0]) == pytest.approx(0.4 * scores_s)  # gradients are added up backward only


def test_memory_bound_work_is_passes_over_elements():
    training = recipe(shape(), dropout=True, method="lora")  # no weight gradients to add up
    rates = {"norm_passes": 20.0, "dropout_passes": 6.0, "qkv_passes": 6.0, "ffn_passes": 8.0, "fusion_ratio": 2.0}
    times = layer(training, memory_bytes_per_s=1e12, other_flop_per_s=FAST, **rates)

    elements = 26 * 1024 + 6 * (1024 + 2 * 256) + 8 * 2816
    assert float(times.memory[0]) == pytest.approx(2.0 * 4096 * elements * 2 / 1e12)


ROUTED = {"experts": 8, "top_k": 2, "expert_ffn": 1408}


@pytest.mark.parametrize(
    ("model", "tp", "elements"),
    [
        # tokens x hidden x experts chosen: 4096 x 1024 x 2
        (shape(**ROUTED), 1, 8_388_608),
        (shape(**ROUTED | {"top_k": 6}), 1, 25_165_824),
        (shape(**ROUTED), 4, 8_388_608),  # ranks that split an expert each take all of its tokens
        (shape(**ROUTED, moe_every=2), 1, 4_194_304),  # in the mean layer, half of which are dense
        (shape(), 1, 0),
    ],
    ids=["two of eight", "six of eight", "tensor parallel", "every second layer", "dense"],
)
def test_routing_moves_the_hidden_state_of_each_token_once_per_pass_and_chosen_expert(model, tp, elements):
    training = recipe(model, method="lora")  # no weight gradients to add up
    at = layouts(tp=tp)
    nothing_else = {"norm_passes": 0.0, "qkv_passes": 0.0, "ffn_passes": 0.0, "fusion_ratio": 1.5}
    rates = compute_bound(memory_bytes_per_s=1e12, other_flop_per_s=FAST, moe_passes=10.0, **nothing_else)
    times = layer_time(training, count_work(training, at), rates)

    # 10 passes of 2 bytes (BF16), half as much again for what is not fused, at 1 TB/s
    assert float(times.memory[0]) == pytest.approx(elements * 10 * 2 * 1.5 / 1e12)
    assert float(times.memory_forward[0]) == pytest.approx(0.4 * elements * 10 * 2 * 1.5 / 1e12)


LINEAR = LinearAttention(layers=1, key_heads=2, key_dim=64, value_heads=16, value_dim=64)


@pytest.mark.parametrize(
    ("tp", "elements"),
    [
        # 4096 tokens, a gate and values of 16 x 64 each, keys and queries of 2 x 64 each, in one of two layers
        (1, 4096 * (2 * 1024 + 2 * 128) // 2),
        (2, 4096 * (2 * 512 + 2 * 64) // 2),
        (4, 4096 * (2 * 256 + 2 * 64) // 2),  # two key heads on four ranks: each keeps one
    ],
)
def test_linear_attention_moves_what_it_scans_once_per_pass_in_the_layers_that_have_it(tp, elements):
    plain, hybrid = shape(layers=2), shape(layers=2, linear=LINEAR)
    nothing_else = {"norm_passes": 0.0, "qkv_passes": 0.0, "ffn_passes": 0.0, "fusion_ratio": 1.5}
    rates = compute_bound(memory_bytes_per_s=1e12, other_flop_per_s=FAST, scan_passes=100.0, **nothing_else)
    with_scan, without = (
        layer_time(training, count_work(training, layouts(tp=tp)), rates)
        for training in (recipe(model, method="lora", lora_targets="mlp") for model in (hybrid, plain))
    )

    # 100 passes of 2 bytes (BF16), half as much again for what is not fused, at 1 TB/s
    assert float(with_scan.memory[0] - without.memory[0]) == pytest.approx(elements * 100 * 2 * 1.5 / 1e12)


def test_a_short_convolution_is_three_activations_and_no_scan():
    convolution = replace(LINEAR, key_heads=1, key_dim=0, head_inputs=0, gates=2)
    nothing_else = {"norm_passes": 0.0, "qkv_passes": 0.0, "fusion_ratio": 1.5, "scan_passes": 1e6}
    rates = compute_bound(memory_bytes_per_s=1e12, other_flop_per_s=FAST, ffn_passes=8.0, **nothing_else)
    with_it, without = (
        layer_time(training, count_work(training, layouts()), rates)
        for training in (recipe(model, method="lora", lora_targets="mlp") for model in (
            shape(layers=2, linear=convolution), shape(layers=2)
        ))
    )  # fmt: skip

    # 4096 tokens, values and two gates of 16 x 64, in one of two layers; 8 passes of 2 bytes, half as much again
    elements = 4096 * 3 * 1024 // 2
    assert float(with_it.memory[0] - without.memory[0]) == pytest.approx(elements * 8 * 2 * 1.5 / 1e12)


def test_a_layer_without_attention_has_none_of_its_time():
    half, all_of_it = shape(layers=2, attention_layers=1, linear=LINEAR), shape(layers=2)
    rates = compute_bound(memory_bytes_per_s=1e12, scan_passes=100.0)
    few, all_layers = (
        layer_time(training, count_work(training, layouts()), rates) for training in (recipe(half), recipe(all_of_it))
    )

    assert float(few.attention[0]) == pytest.approx(0.5 * float(all_layers.attention[0]))


def test_4_bit_weights_are_unpacked_once_forward_and_once_for_the_gradients_of_the_inputs():
    model = shape()
    weights = model.matrix_params_active / model.layers - model.head_params / model.layers
    rates = compute_bound(memory_bytes_per_s=1e12, norm_passes=0.0, qkv_passes=0.0, ffn_passes=0.0, unpacked_bytes=8.0)
    packed, plain = (
        layer_time(training, count_work(training, layouts(tp=2)), rates)
        for training in (recipe(model, method="qlora"), recipe(model, method="lora"))
    )

    # half of the layer's weights on each of two ranks, 8 bytes each, at 1 TB/s
    once = weights / 2 * 8 / 1e12
    assert float(packed.memory[0] - plain.memory[0]) == pytest.approx(2 * once)
    assert float(packed.memory_forward[0] - plain.memory_forward[0]) == pytest.approx(once)


def test_a_layer_with_experts_launches_the_kernels_of_routing_too():
    rates = plain_rates(kernels_per_layer=45.0, kernels_per_moe_layer=150.0)

    assert launches_per_layer(recipe("llama-3.1-8b"), rates) == 45
    assert launches_per_layer(recipe("mixtral-8x7b"), rates) == 195
    assert launches_per_layer(recipe("deepseek-v3"), rates) == pytest.approx(45 + 150 * 58 / 61)


def test_the_mean_layer_weighs_dense_and_expert_layers_by_their_number():
    deepseek = find_model("deepseek-v3")
    times = layer(recipe(deepseek))

    active = (3 * deepseek.layer_params_dense + 58 * deepseek.layer_params_moe_active) / 61
    assert float(times.matmul_forward[0]) == pytest.approx(2 * 4096 * active / 1e12)


def test_the_output_layer_stays_out_of_fp8():
    training = recipe("llama-3.1-8b", policy="fp8")
    rates = compute_bound(linear_flop_per_s=2e12, other_flop_per_s=1e12)
    head = head_time(training, count_work(training, layouts()), rates)

    assert float(head.matmul[0]) == pytest.approx(3 * 2 * 4096 * 128_256 * 4096 / 1e12)


def test_the_loss_moves_its_bytes_per_logit_twice_as_many_in_fp32():
    by_policy = {}
    for policy in ("bf16", "fp32"):
        training = recipe("llama-3.1-8b", policy=policy)
        rates = plain_rates(memory_bytes_per_s=1e12, logit_bytes=22.0)
        by_policy[policy] = float(head_time(training, count_work(training, layouts()), rates).memory[0])

    # 22 bytes per logit and 6 passes over the embedding in 16 bits
    assert by_policy["bf16"] == pytest.approx(4096 * (128_256 * 22 + 6 * 4096 * 2) / 1e12)
    assert by_policy["fp32"] == pytest.approx(2 * by_policy["bf16"])


RATES = ("linear_flop_per_s", "other_flop_per_s", "operand_bytes_per_s", "memory_bytes_per_s", "attention_flop_per_s")


@given(settings_of_recipes(), st.sampled_from(RATES), st.floats(1.0, 10.0))
def test_a_faster_gpu_never_takes_longer(setting, name, factor):
    training, where, machine = setting
    at = Layouts.of(where)
    rates = mid_rates(training, machine)
    faster = rates.replaced(**{name: getattr(rates, name) * factor})
    work = count_work(training, at)
    slow, fast = (layer_time(training, work, r) for r in (rates, faster))

    for item in fields(slow):
        assert np.all(np.ravel(getattr(fast, item.name)) <= np.ravel(getattr(slow, item.name)) * ROUNDING)


def test_casts_and_gaps_lengthen_the_memory_bound_part_of_a_layer():
    training = recipe("llama-3.1-8b", policy="fp8", method="lora")  # no weight gradients to add up
    none = {"norm_passes": 0.0, "qkv_passes": 0.0, "ffn_passes": 0.0, "other_flop_per_s": FAST}
    times = layer(
        training, memory_bytes_per_s=1e12, cast_fusion_ratio=0.5, kernels_per_layer=45.0, kernel_s=1e-5, **none
    )

    # four products of [4096, k] x [k, n]: q, k, v; o; gate and up; down. Six bytes per element of its three matrices
    sizes = [(6144, 4096), (4096, 4096), (2 * 14336, 4096), (4096, 14336)]
    elements = sum(4096 * k + k * n + 4096 * n for n, k in sizes)
    assert float(times.memory[0]) == pytest.approx(0.5 * 6 * elements / 1e12 + 45 * 1e-5)
    assert float(times.memory_forward[0]) == pytest.approx(0.4 * float(times.memory[0]))


def test_a_layer_s_sums_are_those_of_its_parts():
    training = recipe("llama-3.1-8b")
    times = layer(training, memory_bytes_per_s=1e12)

    assert times.total == pytest.approx(times.matmul + times.attention + times.memory)
    assert times.forward == pytest.approx(times.matmul_forward + times.attention_forward + times.memory_forward)
    head = head_time(training, count_work(training, layouts()), plain_rates())
    assert head.total == pytest.approx(head.matmul + head.memory)
