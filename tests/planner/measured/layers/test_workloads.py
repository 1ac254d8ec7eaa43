"""The work behind a measured point: FLOP, passes and weights of decoders, encoders and pictures, by hand."""

from __future__ import annotations

import pytest

from planner.measured.layers.workloads import PointWork, Product, work_of
from tests.planner.recorded import H200, a_measurement

LLAMA_8B = {
    "kind": "block", "layers": 4, "seq_len": 8192, "tokens": 8192, "micro_batch": 1, "hidden": 4096, "heads": 32,
    "kv_heads": 8, "head_dim": 128, "ffn_hidden": 14336, "recompute": "none",
}  # fmt: skip
"""Four layers of Llama 3.1 8B (arXiv 2407.21783, table 3) on one sequence."""
BERT_LARGE = {
    "kind": "end_to_end", "model": "bert-large", "layers": 24, "seq_len": 512, "tokens": 4096, "hidden": 1024,
    "ffn_hidden": 4096, "vocab": 30522, "params": 335_174_458, "recompute": "none",
}  # fmt: skip
"""Eight sequences of BERT-Large (arXiv 1810.04805, section 3)."""
RESNET_50 = {"kind": "end_to_end", "model": "resnet-50", "micro_batch": 2, "seq_len": 224}

LAYER_8B = 4096 * (4096 + 2 * 1024) + 4096 * 4096 + 3 * 4096 * 14336
"""Weights of the matrix products of one layer of the 8B: q, k and v; o; gate, up and down. 218 103 808."""


def work(**facts: object) -> PointWork:
    point_work = work_of(a_measurement(**(facts | H200)))
    assert point_work is not None
    return point_work


def flop(products: tuple[Product, ...]) -> float:
    return sum(product.flop for product in products)


def test_a_block_s_products_are_two_flop_per_token_and_weight():
    block = work(**LLAMA_8B)

    assert LAYER_8B == 218_103_808
    assert flop(block.products) == 2 * 8192 * 4 * LAYER_8B
    assert block.weights == 4 * LAYER_8B
    assert (block.edge_products, block.edge_passes, block.params) == ((), 0.0, 0.0)  # a block has no ends


def test_a_decoder_s_attention_is_the_causal_half():
    # scores and values: 2 x 2 x S/2 x heads x d FLOP per token and layer
    assert work(**LLAMA_8B).attention_flop == 2 * 8192 * 8192 * 32 * 128 * 4
    assert work(**LLAMA_8B | {"tokens": 16384}).attention_flop == 2 * 16384 * 8192 * 32 * 128 * 4
    assert work(**LLAMA_8B).attention_tokens == 8192


def test_a_decoder_s_memory_passes_are_those_of_norms_activation_and_heads():
    # per token: 20 over the hidden size, 8 over the inner one, 6 over q, k, v, and 4 over q and k (rotary embedding)
    per_token = 20 * 4096 + 8 * 14336 + 6 * 48 * 128 + 4 * 40 * 128

    assert work(**LLAMA_8B).element_passes == 4 * 8192 * per_token


def test_tensor_parallel_splits_the_norms_and_adds_what_its_collectives_pass_over():
    whole, split = work(**LLAMA_8B), work(**LLAMA_8B | {"tp": 4})

    # 20 / 4 + 8 instead of 20 over the hidden size
    assert whole.element_passes - split.element_passes == 4 * 8192 * 4096 * (20 - 13)


def test_a_whole_decoder_has_its_output_layer_in_high_precision_its_loss_and_an_update():
    decoder = work(**LLAMA_8B | {"kind": "end_to_end", "model": "llama-8b", "vocab": 128_256, "params": 8_030_261_248})
    (head,) = decoder.edge_products

    assert (head.m, head.n, head.k, head.low) == (8192, 128_256, 4096, False)
    assert decoder.edge_passes == 8192 * (12 * 128_256 + 6 * 4096)
    assert decoder.params == 8_030_261_248


def test_experts_share_the_tokens_and_all_of_their_weights_get_a_gradient():
    # Mixtral's block (arXiv 2401.04088, table 1): two of eight experts
    mixture = work(**LLAMA_8B | {"experts": 8, "top_k": 2})
    dense = work(**LLAMA_8B)
    attention, expert = 4096 * (4096 + 2 * 1024) + 4096 * 4096, 3 * 4096 * 14336

    assert flop(mixture.products) == 2 * 8192 * 4 * (attention + 2 * expert)
    assert mixture.weights == 4 * (attention + 8 * expert)
    # twice the inner activations, and six passes over the hidden state of each choice
    assert mixture.element_passes - dense.element_passes == 4 * 8192 * (8 * 14336 + 6 * 2 * 4096)
    assert [(product.m, product.count) for product in mixture.products[2:]] == [(2048, 32), (2048, 32)]


def test_checkpointing_is_noted():
    assert not work(**LLAMA_8B).recompute
    assert work(**LLAMA_8B | {"recompute": "full"}).recompute


def test_an_encoder_s_layers_are_twelve_h_squared_and_its_attention_the_whole_square():
    encoder = work(**BERT_LARGE)

    assert flop(encoder.products) == 2 * 4096 * 24 * 12 * 1024**2
    assert encoder.weights == 24 * 12 * 1024**2
    assert encoder.attention_flop == 4 * 4096 * 512 * 1024 * 24
    assert encoder.element_passes == 24 * 4096 * (40 * 1024 + 5 * 4096)
    # the output layer and the transform before it
    assert [(product.n, product.k, product.low) for product in encoder.edge_products] == [
        (30522, 1024, False),
        (1024, 1024, False),
    ]
    assert encoder.edge_passes == 4096 * (12 * 30522 + 10 * 1024)
    assert encoder.params == 335_174_458


def test_resnet_50_takes_4_09_g_multiply_adds_for_a_picture_of_224_pixels():
    # torchvision: 4.09 GFLOPS (multiply-adds) and 25 557 032 parameters, of which 2 049 000 in the classifier and
    # 53 120 in the norms
    resnet = work(**RESNET_50)

    assert flop(resnet.products) + flop(resnet.edge_products) == 2 * 8_178_368_512
    assert resnet.weights == 25_557_032 - 2_049_000 - 53_120
    assert len(resnet.products) == 53
    assert resnet.params == 25_557_032


def test_a_larger_picture_scales_with_its_pixels():
    small, large = work(**RESNET_50), work(**RESNET_50 | {"seq_len": 448})

    assert flop(large.products) == 4 * flop(small.products)
    assert large.element_passes == 4 * small.element_passes
    assert flop(large.edge_products) == flop(small.edge_products)


@pytest.mark.parametrize("lacking", ["hidden", "heads", "tokens", "ffn_hidden", "layers", "seq_len"])
def test_a_line_without_a_size_has_no_known_work(lacking):
    assert work_of(a_measurement(**(LLAMA_8B | {lacking: None} | H200))) is None


def test_other_points_have_no_layers():
    assert work_of(a_measurement(kind="gemm", **H200)) is None
    assert work_of(a_measurement(kind="end_to_end", model="mamba-1b", **H200)) is None
    assert work_of(a_measurement(**(BERT_LARGE | {"vocab": None} | H200))) is None
    assert work_of(a_measurement(**(RESNET_50 | {"micro_batch": None} | H200))) is None
