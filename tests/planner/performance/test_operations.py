"""FLOP and shapes, against published formulas and totals."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.models.catalogue import find_model
from planner.models.linear_attention import LinearAttention
from planner.parallelism.layout import Layouts
from planner.performance.operations import (
    attended_tokens,
    attention_flop_per_token,
    count_work,
    expert_tp,
    model_flop_per_token,
    recomputed_flop_per_token,
)
from planner.training.recipe import ACT_CKPT
from tests.planner.build import gpt, layouts, layouts_of, recipe, shape, shapes


@pytest.mark.parametrize(
    ("layers", "hidden", "heads"),
    [(24, 2304, 24), (96, 12288, 96), (128, 25600, 160)],  # 1.7B, 175B and 1T of Narayanan et al. 2021, table 1
)
def test_with_full_recomputation_the_flop_are_those_of_narayanan_et_al_2021(layers, hidden, heads):
    seq, vocab, batch = 2048, 51200, 512
    training = recipe(gpt(layers, hidden, heads, vocab), seq_len=seq, global_batch=batch)

    ours = model_flop_per_token(training.model, seq, causal_half=False)
    ours += recomputed_flop_per_token(training, "full", causal_half=False)

    # equation 3: F = 96 B s l h^2 (1 + s / 6h + V / 16 l h)
    theirs = 96 * batch * seq * layers * hidden**2 * (1 + seq / (6 * hidden) + vocab / (16 * layers * hidden))
    assert ours * batch * seq == pytest.approx(theirs, rel=1e-12)


@pytest.mark.parametrize(("tokens_per_s", "mfu"), [(5762, 0.337), (6667, 0.390)])
def test_the_nominal_count_turns_torchtitan_s_tokens_into_its_mfu(tokens_per_s, mfu):
    # Llama 3.1 8B, 8 x H100, sequence 8192, attention in full, peak 989 TFLOP/s: 33 to 39 % in torchtitan's
    # llama3_h100_202412 report
    flop = model_flop_per_token(find_model("llama-3.1-8b"), 8192, causal_half=False)

    assert tokens_per_s * flop / 989e12 == pytest.approx(mfu, abs=0.0005)


@pytest.mark.parametrize(
    ("model", "tokens", "seq", "low", "high"),
    [
        ("llama-2-70b", 2e12, 4096, 8.4e23, 1e24),  # claim c24: 6ND, plus attention
        ("gpt-3-175b", 300e9, 2048, 3.14e23, 3.4e23),  # Brown et al. 2020, table D.1: 3.14E+23 without attention
        ("llama-3.1-405b", 15.6e12, 8192, 3.8e25, 4.2e25),  # arXiv 2407.21783, section 3.2: 3.8 x 10^25
    ],
)
def test_the_flop_of_whole_runs_are_those_published(model, tokens, seq, low, high):
    assert low <= tokens * model_flop_per_token(find_model(model), seq) <= high


def test_causal_attention_counts_half_and_an_encoder_all_of_it():
    decoder = shape(layers=1)

    full = attention_flop_per_token(decoder, 4096, causal_half=False)
    assert attention_flop_per_token(decoder, 4096) == full / 2
    assert attention_flop_per_token(replace(decoder, kind="encoder"), 4096) == full
    # 2 products x 2 FLOP x 4096 keys x 16 heads x 64
    assert full == 2 * 2 * 4096 * 16 * 64


def test_cross_attention_meets_the_whole_encoder():
    # BART base, 12 heads of 64: 6 encoder layers meet 512 keys, 6 decoder layers 256 of their own and the encoder's 512
    bart = find_model("bart-base")
    keys = 6 * 512 + 6 * (256 + 512)

    assert attention_flop_per_token(bart, 512) == 2 * keys * 12 * (64 + 64)
    work = count_work(recipe(bart, seq_len=512), layouts())
    assert bart.layers * float(work.attention_flop[0]) == 512 * attention_flop_per_token(bart, 512)


@given(seq=st.integers(2, 400), window=st.integers(1, 400))
def test_a_sliding_window_is_the_mean_over_the_positions(seq, window):
    model = shape(sliding_window=window)

    met = [min(position, window) - (0.5 if position <= window else 0.0) for position in range(1, seq + 1)]
    # position p of a causal row sees p keys, of which its own counts half in the S/2 convention
    assert attended_tokens(model, seq) == pytest.approx(sum(met) / seq, abs=1e-9)


def test_alternating_layers_average_window_and_whole_sequence():
    gemma = shape(sliding_window=1024, global_attention_every=6)

    local = 1024 - 1024**2 / (2 * 8192)
    assert attended_tokens(gemma, 8192) == pytest.approx(8192 / 2 / 6 + local * 5 / 6)


def forward_flop(products) -> float:
    return sum(float(np.ravel(2.0 * op.m * op.n * op.k * op.mean_count)[0]) for op in products)


@given(st.data())
def test_the_products_of_all_ranks_are_two_flop_per_token_and_active_parameter(data):
    model = replace(data.draw(shapes()), kind="decoder")
    where = replace(data.draw(layouts_of(model)), cp=1)
    low_rank = model.kv_lora_rank is not None or (model.linear is not None and model.linear.gate_rank > 0)
    if model.kv_heads < where.tp or low_rank:
        where = replace(where, tp=1, ep=1)  # copied key/value heads, and unsplit projections to a rank, are extra work
    tokens = 2048 * where.micro_batch
    work = count_work(recipe(model, seq_len=2048), Layouts.of(where))

    if model.moe_layers < model.layers or not model.experts:
        assert forward_flop(work.dense_layer) * where.tp == pytest.approx(2 * tokens * model.layer_params_dense)
    if model.experts:
        assert forward_flop(work.moe_layer) * where.tp == pytest.approx(2 * tokens * model.layer_params_moe_active)
    assert forward_flop([work.head]) * where.tp == pytest.approx(2 * tokens * model.head_params * model.head_ratio)


def test_the_projection_to_the_rank_of_kimi_delta_attention_s_gates_is_computed_by_every_tensor_rank():
    model = shape(linear=LinearAttention(
        layers=8, key_heads=8, key_dim=64, value_heads=8, value_dim=64, head_inputs=1, gates=0, gate_rank=64,
    ))  # fmt: skip
    whole, split = (forward_flop(count_work(recipe(model), layouts(tp=tp)).dense_layer) for tp in (1, 2))

    assert 2 * split - whole == pytest.approx(2 * (2 * 4096 * 1024 * 64))  # once for decays and once for gates


def test_more_tensor_ranks_than_key_value_heads_keep_a_copy_each():
    training = recipe(shape(heads=16, kv_heads=2, head_dim=64))
    by_tp = {tp: count_work(training, layouts(tp=tp)) for tp in (2, 4)}

    # q of 16/tp heads; k and v of one head each on every rank, no less
    assert float(by_tp[2].head_elements[0]) == 4096 * (8 * 64 + 128)
    assert float(by_tp[4].head_elements[0]) == 4096 * (4 * 64 + 128)


def test_naive_attention_computes_the_whole_square_even_with_a_window():
    windowed = shape(sliding_window=256)
    flash = count_work(recipe(windowed, attention="flash"), layouts())
    naive = count_work(recipe(windowed, attention="naive"), layouts())

    assert float(naive.attention_flop[0]) == 2 * 4096 * 4096 * 16 * (64 + 64)
    assert float(flash.attention_flop[0]) == 2 * 4096 * (256 - 256**2 / 8192) * 16 * (64 + 64)


def test_context_parallel_splits_tokens_and_not_the_keys_they_meet():
    training = recipe(shape(), seq_len=32768)
    whole, split = count_work(training, layouts()), count_work(training, layouts(cp=4))

    assert float(split.tokens[0]) == 32768 / 4
    assert float(split.attention_flop[0]) == float(whole.attention_flop[0]) / 4


def test_experts_are_split_as_the_layout_says_and_a_dense_model_has_none_to_split():
    training = recipe(shape(experts=8, top_k=2, expert_ffn=512))

    assert int(expert_tp(training, layouts(tp=4, dp=8, ep=8))[0]) == 4
    assert int(expert_tp(training, layouts(tp=4, dp=2, ep=8))[0]) == 1
    assert int(expert_tp(recipe(shape()), layouts(tp=8))[0]) == 1


def test_imbalance_gives_the_busiest_gpu_more_rows():
    training = recipe(shape(experts=8, top_k=2, expert_ffn=512))
    even, skewed = count_work(training, layouts(dp=8, ep=8)), count_work(training, layouts(dp=8, ep=8), 1.3)
    rows = [[float(op.m[0]) for op in work.moe_layer if op.grouped] for work in (even, skewed)]

    # 4096 tokens x 2 experts each x 8 ranks over 8 experts, one expert per rank
    assert rows[0] == [8192, 8192]
    assert rows[1] == pytest.approx([8192 * 1.3, 8192 * 1.3])


def test_what_is_recomputed_depends_on_the_stack():
    dense = recipe(gpt(24, 2304, 24), seq_len=2048)
    core = attention_flop_per_token(dense.model, 2048)
    layers = 24 * 12 * 2304**2

    assert recomputed_flop_per_token(dense, "none") == 0
    assert recomputed_flop_per_token(dense, "full") == 2 * layers + core
    assert recomputed_flop_per_token(dense, "selective") == core  # Korthikanti et al. 2022
    assert recomputed_flop_per_token(replace(dense, stack="fsdp-compile"), "selective") == layers  # half
    routed = recipe("mixtral-8x7b")
    assert recomputed_flop_per_token(routed, "selective") == 0  # norms and activations


@pytest.mark.parametrize("stack", ["tuned", "fsdp-compile"])
@pytest.mark.parametrize("act_ckpt", [way for way in ACT_CKPT if way != "selective"])
def test_whole_layers_are_recomputed_by_the_share_of_them_that_is_checkpointed(act_ckpt, stack):
    dense = recipe(gpt(24, 2304, 24), seq_len=2048, stack=stack)
    share = {"none": 0, "full": 1, "every-2": 1 / 2, "every-4": 1 / 4}[act_ckpt]
    layers = 24 * 12 * 2304**2

    recomputed = recomputed_flop_per_token(dense, act_ckpt)

    assert recomputed == pytest.approx(share * (2 * layers + attention_flop_per_token(dense.model, 2048)), rel=1e-12)


def test_the_output_layer_multiplies_only_the_tokens_that_are_predicted():
    # BERT predicts 15 % of its tokens (Devlin et al., arXiv 1810.04805, section 3.1): 614.4 of 4096
    masked = shape(kind="encoder", head_ratio=0.15)
    work = count_work(recipe(masked), layouts(tp=4))

    assert float(work.logit_elements[0]) == pytest.approx(0.15 * 4096 * 32_000 / 4)
    assert float(np.ravel(work.head.m)[0]) == pytest.approx(614.4)
    assert float(np.ravel(work.head.n)[0]) == 8_000


def test_inner_activations_are_split_over_the_tensor_ranks():
    # 4096 tokens x 2816 inner / 4; of experts: tokens / 4, each with two routed and one shared expert of 512
    dense, routed = shape(), shape(experts=8, top_k=2, shared_experts=1, expert_ffn=512)

    assert float(count_work(recipe(dense), layouts(tp=4)).ffn_elements[0]) == 4096 * 2816 / 4
    assert float(count_work(recipe(routed), layouts(tp=4)).expert_elements[0]) == 4096 / 4 * 3 * 512


def test_norms_are_split_over_the_tensor_ranks_only_with_sequence_parallelism():
    # Korthikanti et al. 2022, section 4.2.2: the norms' 10 s b h become 10 s b h / t
    split, whole = (recipe(shape(), sequence_parallel=parallel) for parallel in (True, False))

    assert float(count_work(split, layouts(tp=4)).split_elements[0]) == 4096 * 1024 / 4
    assert float(count_work(whole, layouts(tp=4)).split_elements[0]) == 4096 * 1024


def test_the_flop_of_a_token_count_the_causal_half_unless_the_full_convention_is_asked_for():
    decoder = shape(layers=1)
    full, half = (model_flop_per_token(decoder, 4096, causal_half=causal) for causal in (False, True))

    assert model_flop_per_token(decoder, 4096) == half
    # forward and twice backward of 2 products x 2 FLOP x 2048 keys x 16 heads x 64
    assert full - half == 3 * 2 * 2 * 2048 * 16 * 64


def test_the_flop_of_a_hybrid_are_those_of_the_layers_that_attend_and_of_those_that_scan():
    model, seq = find_model("nemotron-3-nano"), 8192

    # 6 layers of 32 heads of 128; 23 scans of 64 heads of 64 with a state of 128, 7 FLOP for each element
    core = 6 * 2 * (seq / 2) * 32 * (128 + 128) + 23 * 7 * 4096 * 128
    assert attention_flop_per_token(model, seq) == core
    assert model_flop_per_token(model, seq) == 6 * model.matrix_params_active + 3 * core


def test_selective_checkpointing_runs_attention_again_but_no_scan():
    training = recipe(find_model("nemotron-h-56b"), seq_len=8192)

    # 10 layers of 64 heads of 128, 4096 keys on average
    assert recomputed_flop_per_token(training, "selective") == 10 * 2 * 4096 * 64 * (128 + 128)


@pytest.mark.parametrize("name", ["nemotron-3-nano", "nemotron-h-56b", "nemotron-3-super", "qwen3-next", "qwen3.5-9b"])
@pytest.mark.parametrize("tp", [1, 2, 4, 8])
def test_the_products_of_the_mean_layer_hold_every_weight_that_a_token_meets(name, tp):
    training = recipe(find_model(name))
    work = count_work(training, layouts(tp=tp, dp=8))
    share = training.model.moe_share

    def flop(products):
        return sum(2.0 * float(product.m[0]) * product.n * product.k * product.mean_count for product in products)

    layers = sum(
        weight * float(np.ravel(flop(ops))[0])
        for weight, ops in ((1 - share, work.dense_layer), (share, work.moe_layer)) if weight
    )  # fmt: skip
    head = training.model.head_params
    # more ranks than heads of keys
    copies = 1.0 if tp <= min(training.model.kv_heads, training.model.linear.key_heads) else 1.03
    expected = 2 * float(work.tokens[0]) * (training.model.matrix_params_active - head) / training.model.layers / tp
    assert expected * 0.9999 <= layers <= expected * copies * 1.0001
