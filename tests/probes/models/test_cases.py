"""Arithmetic of whole training steps against published figures."""

from __future__ import annotations

from dataclasses import replace

import pytest

from planner.models.images.catalogue import load_image_models, network_of
from probes.models.cases import ModelCase, counts_of, shape_of

LLAMA = ModelCase(family="llama", size="llama-3.2-1b", layers=16, batch=1, seq_len=4096)
BERT = ModelCase(family="bert", size="bert-large", layers=24, batch=16, seq_len=512)
RESNET = ModelCase(family="resnet", size="resnet-50", layers=50, batch=256, seq_len=224)


def test_llama_does_six_flop_per_parameter_and_token_and_attention() -> None:
    # Llama 3.2 1B: 16 layers of 60 817 408 matrix weights, and 128256 x 2048 of the output layer
    weights = 16 * 60_817_408 + 128_256 * 2048
    # causal scores, forward: 2 products x 2 FLOP x half of 4096² x 2048; three times with the backward pass
    attention = 3 * 16 * 2 * 4096**2 * 2048

    assert counts_of(LLAMA).flop_model == pytest.approx(6 * weights * 4096 + attention)


def test_flash_attention_and_checkpointing_add_hardware_arithmetic_only() -> None:
    plain, recomputed = counts_of(LLAMA), counts_of(replace(LLAMA, recompute=True))
    forward = 16 * 2 * 4096**2 * 2048

    # the backward pass computes the scores again: 2.5 instead of 2 times the forward FLOP (Dao, arXiv 2307.08691)
    assert plain.flop_hardware - plain.flop_model == pytest.approx(0.5 * forward)
    assert recomputed.flop_model == plain.flop_model
    # once more the layers, without the output layer
    assert recomputed.flop_hardware - plain.flop_hardware == pytest.approx(2 * 16 * 60_817_408 * 4096 + forward)


def test_bert_attends_to_the_whole_sequence() -> None:
    # BERT-Large: 24 layers of 12 582 912 matrix weights, head 1024 x 30522 and 1024²; 16 x 512 tokens
    weights = 24 * 12_582_912 + 1024 * 30_522 + 1024**2
    attention = 3 * 24 * 4 * 16 * 512**2 * 1024

    assert counts_of(BERT).flop_model == pytest.approx(6 * weights * 16 * 512 + attention)


def test_resnet_50_takes_its_published_arithmetic_per_image_and_grows_with_the_area() -> None:
    # three times 2 x 4.09 G multiply-adds; the table of its convolutions agrees
    assert counts_of(RESNET).flop_model == pytest.approx(256 * 3 * 8.18e9)
    assert counts_of(RESNET).flop_model == pytest.approx(
        256 * 3 * network_of(load_image_models()["resnet50"]).flop_per_image, rel=1e-3
    )
    assert counts_of(replace(RESNET, seq_len=448)).flop_model == 4 * counts_of(RESNET).flop_model


def test_the_tokens_of_a_step_are_its_images_for_a_network_of_convolutions() -> None:
    assert (shape_of(LLAMA).tokens, shape_of(BERT).tokens, shape_of(RESNET).tokens) == (4096, 8192, 256)
    assert (shape_of(BERT).head_dim, shape_of(BERT).vocab, shape_of(RESNET).hidden) == (64, 30_522, None)
