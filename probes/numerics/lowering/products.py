"""The three products of a linear layer on quantised operands, and the rounding of tensors that pass through a layer.

```
y  = q(x) q(w)^T     dx = q(dy) q(w)     dw = q(dy)^T q(x)
```

Each operand is scaled along the inner dimension of its product. Emulated products are FP32 products of the exact
quantised values, and differ from a real kernel only in the order and width of the sums.
"""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import torch
from torch import nn

from probes.numerics.formats.elements import find_format, rounded
from probes.numerics.formats.scales import MX_BLOCK, NVFP4_BLOCK, SCALINGS, TILE
from probes.numerics.lowering import block_products
from probes.numerics.lowering.recipes import LowerRecipe

SIZE_UNITS = {"tensorwise": 16, "rowwise": 16, "blockwise": TILE, "mx": MX_BLOCK, "nvfp4": 2 * NVFP4_BLOCK}
"""Sizes must be multiples of these, by scaling; each size is the inner dimension of one of the products. The units take
16 bytes of a row, which are 32 numbers of FP4 (`ScaledBlas.cpp` of torch 2.13)."""


def quantised(x: torch.Tensor, recipe: LowerRecipe, *, gradient: bool = False, weight: bool = False) -> torch.Tensor:
    """Return a tensor as the recipe's matrix units see it, in FP32; its last dimension is the product's inner one."""
    element = find_format(recipe.gradient_format if gradient else recipe.forward_format)
    if recipe.autocast is not None:
        return rounded(x.float(), element)
    return SCALINGS[recipe.scaling](x.float(), element, weight)


Multiply = Callable[..., torch.Tensor]
"""`(left [rows, inner], right [columns, inner], recipe, gradient=, weight=) -> [rows, columns]` in FP32: the product of
quantised operands. The flags say whether the left one is a gradient and whether the right one is a weight."""


def emulated(
    left: torch.Tensor, right: torch.Tensor, recipe: LowerRecipe, *, gradient: bool = False, weight: bool = False
) -> torch.Tensor:
    """Return the FP32 product of the exact quantised values."""
    return quantised(left, recipe, gradient=gradient) @ quantised(right, recipe, weight=weight).t()


class _Products(torch.autograd.Function):  # type: ignore[misc] # torch is untyped here
    """`[rows, in] x [out, in] -> [rows, out]` with all three products quantised."""

    @staticmethod
    def forward(
        ctx: Any, x: torch.Tensor, weight: torch.Tensor, recipe: LowerRecipe, multiply: Multiply
    ) -> torch.Tensor:
        ctx.save_for_backward(x, weight)
        ctx.recipe, ctx.multiply = recipe, multiply
        return multiply(x, weight, recipe, weight=True)

    @staticmethod
    def backward(ctx: Any, *grads: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, None, None]:
        x, weight = ctx.saved_tensors
        dy, recipe, multiply = grads[0], ctx.recipe, ctx.multiply
        dx = multiply(dy, weight.t(), recipe, gradient=True, weight=True)
        dw = multiply(dy.t(), x.t(), recipe, gradient=True)
        return dx, dw, None, None


class _ValueRounded(torch.autograd.Function):  # type: ignore[misc]
    """Quantises in the forward pass; passes the gradient unchanged."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, recipe: LowerRecipe, dim: int) -> torch.Tensor:
        return quantised(x.movedim(dim, -1), recipe).movedim(-1, dim)

    @staticmethod
    def backward(ctx: Any, *grads: torch.Tensor) -> tuple[torch.Tensor, None, None]:
        return grads[0], None, None


class _GradientRounded(torch.autograd.Function):  # type: ignore[misc]
    """Passes values unchanged in the forward pass; quantises the gradient."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, recipe: LowerRecipe, dim: int) -> torch.Tensor:
        ctx.recipe, ctx.dim = recipe, dim
        return x.view_as(x)

    @staticmethod
    def backward(ctx: Any, *grads: torch.Tensor) -> tuple[torch.Tensor, None, None]:
        moved = grads[0].movedim(ctx.dim, -1)
        return quantised(moved, ctx.recipe, gradient=True).movedim(-1, ctx.dim), None, None


def fits_matrix_units(layer: nn.Linear, x: torch.Tensor, recipe: LowerRecipe) -> bool:
    """Return whether the sizes of all three products are multiples of those that the matrix units take."""
    unit = SIZE_UNITS[recipe.scaling]
    return not any(size % unit for size in (layer.in_features, layer.out_features, x.numel() // x.shape[-1]))


def linear(layer: nn.Linear, x: torch.Tensor, recipe: LowerRecipe, multiply: Multiply = emulated) -> torch.Tensor:
    """Return the layer's output `[..., out]` in FP32.

    Args:
        layer: provides the weight and bias.
        x: `[..., in]`.
        recipe: a scaled recipe.
        multiply: computes each of the three products.
    """
    flat = x.reshape(-1, x.shape[-1]).float()
    y = _Products.apply(flat, layer.weight, recipe, multiply)
    y = y if layer.bias is None else y + layer.bias
    return torch.as_tensor(y).reshape(*x.shape[:-1], layer.out_features)


def on_matrix_units(layer: nn.Linear, x: torch.Tensor, recipe: LowerRecipe, *, emulate: bool = False) -> torch.Tensor:
    """Return the layer's output `[..., out]` in FP32, computed on the device's own matrix units.

    `fits_matrix_units` must have shown that they take the sizes.

    Args:
        layer: provides the weight and bias.
        x: `[..., in]`.
        recipe: a scaled recipe.
        emulate: for `mx`, use torchao's emulation, which runs through the same code path.
    """
    if recipe.scaling in block_products.BY_SCALING:
        return linear(layer, x, recipe, block_products.multiplied)
    if recipe.scaling == "mx":
        from probes.precisions.linear.mx_linear import MxLinear

        held: Any = SimpleNamespace(weight=layer.weight.bfloat16(), bias=layer.bias, emulate=emulate)
        return MxLinear.forward(held, x.bfloat16().contiguous()).float()
    from probes.precisions.linear.scaled_linear import ScaledLinear

    held = SimpleNamespace(weight=layer.weight, bias=layer.bias, rowwise=recipe.scaling == "rowwise")
    return ScaledLinear.forward(held, x.contiguous()).float()


def convolution(layer: nn.Conv2d, x: torch.Tensor, recipe: LowerRecipe) -> torch.Tensor:
    """Convolve quantised operands, which are scaled along the channels."""
    weight = _ValueRounded.apply(layer.weight, recipe, 1)
    y = layer._conv_forward(_ValueRounded.apply(x.float(), recipe, 1), weight, layer.bias)
    return _GradientRounded.apply(y, recipe, 1)


def embedding(layer: nn.Embedding, index: torch.Tensor, recipe: LowerRecipe) -> torch.Tensor:
    """Look up quantised rows of a table; the gradients that flow back into it are quantised too."""
    rows = nn.functional.embedding(index, layer.weight, layer.padding_idx)
    return _GradientRounded.apply(_ValueRounded.apply(rows, recipe, -1), recipe, -1)


def other(forward: Any, arguments: tuple[Any, ...], keywords: dict[str, Any], recipe: LowerRecipe) -> Any:
    """Run any other layer, such as a norm or an unknown one, on quantised inputs, and quantise its gradient."""
    rounded = [_ValueRounded.apply(value.float(), recipe, -1) if _is_real(value) else value for value in arguments]
    y = forward(*rounded, **keywords)
    return _GradientRounded.apply(y, recipe, -1) if _is_real(y) else y


def _is_real(value: object) -> bool:
    return isinstance(value, torch.Tensor) and value.is_floating_point()
