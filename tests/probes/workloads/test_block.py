"""Layer shards: their arithmetic, and what their points record."""

from __future__ import annotations

from dataclasses import replace

import pytest

from probes.models.shapes import LLAMA_8B, LLAMA_70B_TP8, QWEN3_30B_EP8, TINY
from probes.precisions import recipe_by_id
from probes.workloads.block import BlockCase, block_counts, block_point
from tests.probes.build import CPU

CASE = BlockCase(shape=LLAMA_8B, layers=4, seq_len=8192)
ATTENTION = 4 * 2 * 8192**2 * 4096
"""Forward FLOP of causal attention in four 8B layers: 2 products x 2 FLOP x half of 8192² x 32 heads of 128."""


def test_a_layer_does_six_flop_per_weight_and_token_and_attention() -> None:
    # 218 103 808 matrix weights per layer of Llama 3.1 8B
    counts = block_counts(CASE)

    assert counts.flop_model == pytest.approx(6 * 4 * 218_103_808 * 8192 + 3 * ATTENTION)
    assert counts.flop_hardware - counts.flop_model == pytest.approx(0.5 * ATTENTION)


def test_recomputation_adds_a_forward_pass_of_hardware_arithmetic() -> None:
    plain, recomputed = block_counts(CASE), block_counts(replace(CASE, recompute=True))

    assert recomputed.flop_model == plain.flop_model
    forward = 2 * 4 * 218_103_808 * 8192 + ATTENTION
    assert recomputed.flop_hardware - plain.flop_hardware == pytest.approx(forward)


def test_an_eighth_of_the_heads_and_products_is_an_eighth_of_the_arithmetic() -> None:
    case = BlockCase(shape=LLAMA_70B_TP8, layers=1, seq_len=8192)

    # 855 638 016 weights over eight ranks, 8 heads of 128 for the rank's own attention
    expected = 6 * 855_638_016 / 8 * 8192 + 3 * 2 * 8192**2 * 1024
    assert block_counts(case).flop_model == pytest.approx(expected)


def test_a_token_of_a_mixture_passes_through_its_chosen_experts_only() -> None:
    case = BlockCase(shape=QWEN3_30B_EP8, layers=1, seq_len=1024)

    # attention 2048 x 5120 + 4096 x 2048, and 8 experts of 3 x 2048 x 768 per token
    weights = 2048 * 5120 + 4096 * 2048 + 8 * 3 * 2048 * 768
    assert block_counts(case).flop_model == pytest.approx(6 * weights * 1024 + 3 * 2 * 1024**2 * 4096)


def test_the_point_of_a_case_records_its_sizes_and_how_it_is_run() -> None:
    case = replace(CASE, micro_batch=2, recompute=True, compiled=True)

    point = block_point(case, recipe_by_id("fp8"))

    assert point.probe_id == "block/llama-3.1-8b/tp1/L4/s8192b2/fp8/recompute/compiled"
    assert (point.setup.recompute, point.setup.compiled, point.setup.grad_accumulation) == ("full", True, True)
    assert (point.shape.tokens, point.shape.layers, point.shape.experts) == (16_384, 4, None)


def test_fp8_is_not_measured_at_sizes_that_its_units_do_not_take() -> None:
    odd = replace(CASE, shape=replace(LLAMA_8B, ffn=14_344))  # a multiple of 8, not of 16

    assert block_point(odd, recipe_by_id("fp8")).unsupported is not None
    assert block_point(odd, recipe_by_id("bf16-fsdp")).unsupported is None


@pytest.mark.parametrize("recipe", ["fp32", "bf16-autocast", "bf16-fsdp"])
def test_a_layer_says_which_attention_it_ran(recipe: str) -> None:
    pytest.importorskip("torch")
    case = BlockCase(shape=TINY, layers=1, seq_len=64)

    outcome = block_point(case, recipe_by_id(recipe)).build(CPU).outcome()

    assert outcome.attention_backend == "flash_cpu"
