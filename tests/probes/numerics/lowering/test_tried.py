"""What a device should run is believed once a small product came out right."""

from __future__ import annotations

import pytest

from probes.device.faults import DeviceLost
from probes.numerics.lowering.recipes import lower_by_id

torch = pytest.importorskip("torch")
if not hasattr(torch.nn.functional, "scaled_mm"):
    pytest.skip("scales per block need torch 2.10", allow_module_level=True)

from probes.numerics.lowering import block_products  # noqa: E402 - it needs torch
from probes.numerics.lowering.tried import why_not_real  # noqa: E402
from probes.numerics.training import Place  # noqa: E402
from tests.probes.fake_cuda.installed import fake_cuda  # noqa: E402

HOPPER = Place(device=torch.device("cpu"), kind="cuda", capability=(9, 0), size="small")
BLOCKWISE = lower_by_id("fp8-blockwise")


@pytest.fixture(autouse=True)
def tried_anew():
    why_not_real.cache_clear()
    with fake_cuda(whole_models=False):
        yield
    why_not_real.cache_clear()


@pytest.mark.parametrize("name", ["bf16", "fp16", "fp8", "fp8-rowwise", "fp8-blockwise"])
def test_right_products_are_real(name):
    assert HOPPER.mode_of(lower_by_id(name)) == ("real", None)


def test_scales_that_a_kernel_reads_from_the_wrong_place_are_seen(monkeypatch):
    """As before torch 2.10, whose kernel was right for inner sizes that are multiples of 512 alone."""
    right = block_products.block_operand

    def misread(x, element_id, is_weight):
        operand = right(x, element_id, is_weight)
        if is_weight:
            by_row = operand.scales[0].t()  # [rows of blocks, blocks filled up to four]
            used = x.shape[1] // 128
            by_row[:, :used] = by_row.reshape(-1)[: by_row.shape[0] * used].reshape(-1, used)
        return operand

    monkeypatch.setitem(block_products.BY_SCALING, "blockwise", misread)

    mode, why = HOPPER.mode_of(BLOCKWISE)

    assert mode == "emulated"
    assert why.startswith("a small matrix product on its own units is off by")


def test_a_product_that_is_not_there_is_emulated_and_says_why(monkeypatch):
    def refuse(*_, **__):
        raise NotImplementedError("DeepSeek style (1x128, 128x128) scaling requires cublasLt >= 12.9")

    monkeypatch.setattr(torch.nn.functional, "scaled_mm", refuse)

    mode, why = HOPPER.mode_of(BLOCKWISE)

    assert mode == "emulated"
    assert "requires cublasLt >= 12.9" in why
    assert HOPPER.mode_of(lower_by_id("fp8")) == ("real", None)


def test_a_torch_without_such_products_is_said_to_lack_them(monkeypatch):
    monkeypatch.delattr(torch.nn.functional, "scaled_mm")

    assert "torch 2.10" in HOPPER.mode_of(BLOCKWISE)[1]


def test_products_that_are_not_finite_are_not_real(monkeypatch):
    monkeypatch.setattr(
        torch.nn.functional, "scaled_mm",
        lambda a, b, *_, **__: torch.full((a.shape[0], b.shape[1]), float("nan"), dtype=torch.bfloat16),
    )  # fmt: skip

    assert HOPPER.mode_of(BLOCKWISE)[0] == "emulated"


def test_a_device_that_is_lost_meanwhile_is_not_a_matter_of_precision(monkeypatch):
    def lost(*_, **__):
        raise RuntimeError("CUDA error: an illegal memory access was encountered")

    monkeypatch.setattr(torch.nn.functional, "scaled_mm", lost)

    with pytest.raises(DeviceLost, match="illegal memory access"):
        HOPPER.mode_of(BLOCKWISE)


def test_trying_draws_nothing_that_a_run_would_miss():
    before = torch.get_rng_state()

    HOPPER.mode_of(BLOCKWISE)

    assert torch.equal(torch.get_rng_state(), before)
