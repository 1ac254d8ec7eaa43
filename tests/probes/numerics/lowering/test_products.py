"""The three products of a lowered layer against products of operands that were rounded by hand."""

from __future__ import annotations

import pytest

from probes.numerics.lowering.recipes import lower_by_id

torch = pytest.importorskip("torch")

from probes.numerics.lowering import products  # noqa: E402 - it needs torch

SCALED = ("fp8", "fp8-rowwise", "fp8-blockwise", "mxfp8", "nvfp4")


def layer_and_input(rows: int = 32, inner: int = 64, columns: int = 48):
    generator = torch.Generator().manual_seed(7)
    layer = torch.nn.Linear(inner, columns)
    with torch.no_grad():
        layer.weight.copy_(torch.randn(columns, inner, generator=generator).bfloat16())
        layer.bias.copy_(torch.randn(columns, generator=generator))
    return layer, torch.randn(rows, inner, generator=generator).bfloat16().float().requires_grad_()


@pytest.mark.parametrize("name", SCALED)
def test_all_three_products_are_those_of_the_quantised_operands(name):
    recipe = lower_by_id(name)
    layer, x = layer_and_input()
    dy = torch.randn(32, 48, generator=torch.Generator().manual_seed(8))

    y = products.linear(layer, x, recipe)
    y.backward(dy)

    with torch.no_grad():
        qx, qw = products.quantised(x, recipe), products.quantised(layer.weight, recipe, weight=True)
        assert torch.equal(y, qx @ qw.t() + layer.bias)
        dx = (
            products.quantised(dy, recipe, gradient=True)
            @ products.quantised(layer.weight.t(), recipe, weight=True).t()
        )
        dw = products.quantised(dy.t(), recipe, gradient=True) @ products.quantised(x.t(), recipe).t()
    assert torch.equal(x.grad, dx)
    assert torch.equal(layer.weight.grad, dw)
    assert torch.allclose(layer.bias.grad, dy.sum(0), atol=1e-5)


@pytest.mark.parametrize(("name", "error"), [("fp8", 0.05), ("mxfp8", 0.05), ("nvfp4", 0.2)])
def test_the_error_is_that_of_the_format(name, error):
    layer, x = layer_and_input()

    y = products.linear(layer, x, lower_by_id(name))

    exact = layer(x)
    assert 0.003 < ((y - exact).norm() / exact.norm()).item() < error


@pytest.mark.parametrize("name", ["fp8", "mxfp8"])
def test_the_devices_own_kernels_give_what_is_emulated_but_for_bf16_sums(name):
    recipe = lower_by_id(name)
    if recipe.needs:
        pytest.importorskip(recipe.needs)
    layer, x = layer_and_input(columns=64)
    emulated = products.linear(layer, x, recipe)

    real = products.on_matrix_units(layer, x, recipe, emulate=True)

    assert real.dtype == torch.float32
    assert ((real - emulated).norm() / emulated.norm()).item() < 6e-3  # the result is rounded to BF16
    real.sum().backward()
    assert layer.weight.grad.dtype == torch.float32
    assert torch.isfinite(x.grad).all()


@pytest.mark.parametrize("name", ["fp8", "mxfp8"])
def test_the_devices_own_kernels_take_an_input_that_is_stored_transposed(name):
    recipe = lower_by_id(name)
    if recipe.needs:
        pytest.importorskip(recipe.needs)
    layer, x = layer_and_input(columns=64)
    transposed = x.detach().t().contiguous().t()
    assert not transposed.is_contiguous()

    with torch.no_grad():
        expected = products.on_matrix_units(layer, x, recipe, emulate=True)
        assert torch.equal(products.on_matrix_units(layer, transposed, recipe, emulate=True), expected)


@pytest.mark.parametrize(
    ("name", "rows", "columns", "fits"),
    [("fp8", 32, 48, True), ("fp8", 24, 48, False), ("fp8", 32, 10, False), ("mxfp8", 32, 64, True),
     ("mxfp8", 32, 48, False)],
)  # fmt: skip
def test_matrix_units_take_multiples_of_16_and_blocks_of_32(name, rows, columns, fits):
    layer, x = layer_and_input(rows=rows, columns=columns)

    assert products.fits_matrix_units(layer, x, lower_by_id(name)) == fits


def test_the_forward_product_and_the_inputs_gradient_in_nvfp4_see_one_quantised_weight():
    recipe = lower_by_id("nvfp4")
    layer, _ = layer_and_input()

    forward = products.quantised(layer.weight, recipe, weight=True)

    assert torch.equal(products.quantised(layer.weight.t(), recipe, weight=True).t(), forward)


def test_a_convolution_an_embedding_and_a_norm_round_values_and_gradients():
    recipe = lower_by_id("nvfp4")
    convolution, image = torch.nn.Conv2d(16, 8, 3), torch.randn(2, 16, 6, 6, requires_grad=True)
    table, index = torch.nn.Embedding(10, 32), torch.tensor([[1, 2], [3, 1]])
    norm, x = torch.nn.LayerNorm(32), torch.randn(4, 32, requires_grad=True)

    y = products.convolution(convolution, image, recipe)
    rows = products.embedding(table, index, recipe)
    z = products.other(norm, (x,), {}, recipe)
    (y.square().sum() + rows.square().sum() + z.square().sum()).backward()

    assert not torch.equal(y, convolution(image))
    assert y.shape == convolution(image).shape
    assert torch.equal(rows, products.quantised(table(index), recipe))
    assert torch.equal(z, norm(products.quantised(x, recipe)))
    for gradient in (image.grad, convolution.weight.grad, table.weight.grad, x.grad):
        assert torch.isfinite(gradient).all()
        assert gradient.abs().sum() > 0
