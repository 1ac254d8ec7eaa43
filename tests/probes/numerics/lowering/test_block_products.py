"""Products with a scale per block, on a stand-in whose layouts torch itself checks, against the emulated ones."""

from __future__ import annotations

import pytest

from probes.numerics.lowering.recipes import lower_by_id

torch = pytest.importorskip("torch")
if not hasattr(torch.nn.functional, "scaled_mm"):
    pytest.skip("scales per block need torch 2.10", allow_module_level=True)

from probes.numerics.formats.elements import find_format  # noqa: E402 - it needs torch
from probes.numerics.formats.scales import nvfp4_parts  # noqa: E402
from probes.numerics.lowering import block_products, products  # noqa: E402
from tests.probes.fake_cuda.installed import fake_cuda  # noqa: E402

HOPPER, BLACKWELL = (9, 0), (10, 0)
HAS = {"fp8-blockwise": HOPPER, "nvfp4": BLACKWELL}


@pytest.fixture
def gpu_of(monkeypatch):
    """A stand-in for CUDA with the capability that a recipe needs, until the test ends."""
    with fake_cuda(whole_models=False):
        yield lambda capability: monkeypatch.setattr(torch.cuda, "get_device_capability", lambda *_: capability)


@pytest.mark.parametrize("name", HAS)
@pytest.mark.parametrize(("rows", "inner", "columns"), [(128, 128, 128), (256, 640, 384), (384, 512, 128)])
def test_all_three_products_are_the_emulated_ones_but_for_bf16(gpu_of, name, rows, inner, columns):
    gpu_of(HAS[name])
    recipe = lower_by_id(name)
    generator = torch.Generator().manual_seed(rows + inner)
    layer = torch.nn.Linear(inner, columns)
    with torch.no_grad():  # blocks whose scales differ along both dimensions
        layer.weight.copy_(torch.randn(columns, inner, generator=generator) * torch.logspace(-3, 2, inner))
        layer.weight.mul_(torch.logspace(-1, 1, columns)[:, None])
    x = torch.randn(rows, inner, generator=generator) * torch.logspace(2, -3, rows)[:, None]
    dy = torch.randn(rows, columns, generator=generator) * torch.logspace(-4, 0, columns)
    results = []
    for forward in (products.linear, products.on_matrix_units):
        leaf = x.clone().requires_grad_()
        layer.zero_grad()
        y = forward(layer, leaf, recipe)
        y.backward(dy)
        results.append((y.detach(), leaf.grad, layer.weight.grad.clone(), layer.bias.grad.clone()))

    for exact, real in zip(*results, strict=True):
        assert real.dtype == torch.float32
        assert torch.allclose(real, exact, rtol=2.0**-8, atol=1e-6 * float(exact.abs().max()))


def test_the_operands_of_a_weight_are_one_for_the_output_and_the_inputs_gradient():
    weight = torch.randn(256, 384, generator=torch.Generator().manual_seed(1))

    along, across = (block_products.block_operand(w, "e4m3", True) for w in (weight, weight.t()))

    assert torch.equal(along.values.float().t(), across.values.float())
    assert along.scales[0].shape == (4, 2)  # three blocks along the inner dimension, filled up to four
    assert along.scales[0].stride() == (1, 4)
    assert torch.equal(along.scales[0][:3].t(), across.scales[0][:2])


@pytest.mark.parametrize(("rows", "columns"), [(128, 4), (40, 3), (300, 9)])
def test_scales_lie_where_the_matrix_units_read_them(rows, columns):
    scale = torch.arange(1.0, rows * columns + 1).reshape(rows, columns)

    order = block_products.swizzled(scale)

    tiles_across = -(-columns // 4)
    assert order.numel() == -(-rows // 128) * 128 * tiles_across * 4
    for row, column in ((0, 0), (1, 2), (33, columns - 1), (rows - 1, 0), (rows - 1, columns - 1)):
        tile = row // 128 * tiles_across + column // 4
        place = tile * 512 + row % 32 * 16 + row % 128 // 32 * 4 + column % 4
        assert order[place] == scale[row, column]
    assert torch.count_nonzero(order) == scale.numel()


def test_fp4_is_two_to_a_byte_with_the_first_in_the_low_bits():
    values = torch.tensor([[0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, -0.0, -0.5, -1.0, -1.5, -2.0, -3.0, -4.0, -6.0]])

    packed = block_products.packed_e2m1(values)

    assert packed.dtype == torch.float4_e2m1fn_x2
    assert packed.view(torch.uint8).tolist() == [[0x10, 0x32, 0x54, 0x76, 0x98, 0xBA, 0xDC, 0xFE]]


def test_scales_of_nvfp4_are_numbers_that_e4m3_has():
    x = torch.randn(64, 64, generator=torch.Generator().manual_seed(2)) * torch.logspace(-6, 3, 64)[:, None]

    _, scale, _ = nvfp4_parts(x, find_format("e2m1"))

    assert torch.equal(scale.to(torch.float8_e4m3fn).float(), scale)
