"""Architectures: every GPU has one, and each feature is that of its generation."""

from __future__ import annotations

import pytest

from planner.errors import UsageError
from planner.hardware.architectures import ARCHITECTURES, BLOCK_SCALES, find_architecture
from planner.hardware.catalogue import load_gpus


@pytest.mark.parametrize("gpu", load_gpus().values(), ids=lambda gpu: gpu.id)
def test_every_gpu_of_the_catalogue_has_an_architecture_that_is_not_younger(gpu):
    assert find_architecture(gpu.arch).year <= gpu.year


@pytest.mark.parametrize("architecture", ARCHITECTURES.by_id.values(), ids=lambda architecture: architecture.name)
def test_a_row_points_to_rows_that_exist(architecture):
    assert architecture.parameters_of in ARCHITECTURES.by_id
    if architecture.reference_gpu is not None:
        assert "bf16" in load_gpus()[architecture.reference_gpu].measured_matmul_flop_per_s
    assert set(architecture.block_scales) <= set(BLOCK_SCALES)
    assert len(architecture.source) > 10


def test_fused_attention_starts_with_ampere():
    # Dao-AILab/flash-attention README: Ampere, Ada or Hopper GPUs
    without = [name for name, row in ARCHITECTURES.by_id.items() if not row.fused_attention]

    assert without == ["Pascal", "Volta", "Turing"]


def test_block_scales_start_with_blackwell_and_cdna4():
    # OCP Microscaling Formats 1.0; NVFP4 is NVIDIA's
    scaled = {name: row.block_scales for name, row in ARCHITECTURES.by_id.items() if row.block_scales}

    blackwell = dict.fromkeys(("Blackwell", "Blackwell RTX", "Blackwell Ultra"), ("mx", "nvfp4"))
    assert scaled == blackwell | {"CDNA4": ("mx",)}


def test_an_unknown_architecture_is_named():
    with pytest.raises(UsageError, match="unknown GPU architecture `Rubin`"):
        find_architecture("Rubin")


def test_structured_sparsity_doubles_the_peak_since_ampere_and_cdna3():
    # NVIDIA A100 and H100 whitepapers; AMD CDNA 3 whitepaper
    sparse = {name for name, row in ARCHITECTURES.by_id.items() if row.sparse_ratio is not None}

    assert sparse == {"Ampere", "Ada", "Hopper", "Blackwell", "Blackwell RTX", "Blackwell Ultra", "CDNA3", "CDNA4"}
    assert {ARCHITECTURES.by_id[name].sparse_ratio for name in sparse} == {2.0}


def test_cards_of_blackwell_have_the_attention_of_ampere_and_ada() -> None:
    card, board = (load_gpus()[name].arch for name in ("rtx-5090", "b200-sxm-180gb"))

    assert not find_architecture(card).asynchronous_units
    assert not find_architecture(card).overlaps_tp
    assert find_architecture(board).asynchronous_units
    assert find_architecture(card).parameters_of == find_architecture(board).parameters_of
