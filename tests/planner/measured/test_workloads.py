"""The work behind a point: its products and passes from the sizes that its line gives."""

from __future__ import annotations

import pytest

from planner.measured.workloads import work_of
from tests.planner.recorded import a_measurement

LLAMA_8B = {"hidden": 4096, "heads": 32, "kv_heads": 8, "head_dim": 128, "ffn_hidden": 14336}


def block(**changes: object):
    values = {"kind": "block", "layers": 2, "seq_len": 2048, "micro_batch": 1, "tokens": 2048, "recompute": "none"}
    return work_of(a_measurement(**(values | LLAMA_8B | changes)))


def test_a_decoder_layer_has_two_flop_per_weight_and_token_and_half_of_the_scores() -> None:
    work = block()

    # Llama 3.1 8B: 4096 x 6144 + 4096 x 4096 + 3 x 4096 x 14336 = 218 103 808 matrix weights per layer
    assert work.weights == 2 * 218_103_808
    assert sum(product.flop for product in work.products) == 2.0 * 2048 * work.weights
    # 2 products x 2 FLOP x half of 2048² x 32 heads of 128, two layers
    assert work.attention_flop == 2 * 2 * 2048**2 * 4096
    assert (work.edge_products, work.edge_passes, work.params) == ((), 0.0, 0.0)


def test_the_passes_of_a_decoder_layer_are_those_of_its_fused_kernels() -> None:
    # per token: 20 x 4096 hidden, 8 x 14336 inner, 6 x 6144 qkv, 4 x 5120 queries and keys
    per_token = 20 * 4096 + 8 * 14336 + 6 * 6144 + 4 * 5120
    assert block().element_passes == 2 * 2048 * per_token

    # a rank of two: norms and residuals see half of the tokens, collectives add 8 passes of the hidden state
    assert block(tp=2).element_passes == 2 * 2048 * (per_token - 10 * 4096 + 8 * 4096)


def test_experts_share_the_rows_and_routing_adds_passes() -> None:
    dense, routed = block(), block(experts=8, top_k=2)

    # 8 experts with 2048 x 2 / 8 rows each
    assert [(product.m, product.count) for product in routed.products[2:]] == [(512.0, 16.0), (512.0, 16.0)]
    # twice the rows through the feed-forward, and 6 passes of the rows sent
    assert routed.element_passes - dense.element_passes == 2 * 2048 * (8 * 14336 + 6 * 2 * 4096)


def test_resnet_50_does_its_published_arithmetic() -> None:
    point = a_measurement(kind="end_to_end", model="resnet-resnet-50", micro_batch=1, seq_len=224, tokens=1)
    work = work_of(point)

    # torchvision's ResNet-50: 4.09 G multiply-adds and 25.56 M parameters, of which 23.45 M are convolutions
    flop = sum(product.flop for product in (*work.products, *work.edge_products))
    assert flop == pytest.approx(2 * 4.09e9, rel=2e-3)
    assert work.weights == 23_454_912
    assert work.params == pytest.approx(25_557_032)


def test_the_arithmetic_of_an_image_grows_with_its_area() -> None:
    small, large = (
        work_of(a_measurement(kind="end_to_end", model="resnet-resnet-50", micro_batch=2, seq_len=side, tokens=2))
        for side in (112, 224)
    )

    assert [b.m / a.m for a, b in zip(small.products, large.products, strict=True)] == [4.0] * 53
    assert large.element_passes == 4 * small.element_passes


def test_a_line_without_its_sizes_has_no_known_work() -> None:
    assert block(hidden=None) is None
    assert work_of(a_measurement()) is None
