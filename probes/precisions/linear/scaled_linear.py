"""FP8 linear layers on `torch._scaled_mm`, for machines without torchao: current scaling, per tensor or per row.

```
y  = q(x) @ q(w).T         e4m3 x e4m3, fast accumulation
dx = q(dy) @ q(w)          e5m2 (tensorwise) or e4m3 (rowwise) x e4m3
dw = q(dy).T @ q(x)        the same; the result stays in high precision
```
"""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from probes.precisions.linear.products import quantise, scaled_mm


class _ScaledProduct(torch.autograd.Function):  # type: ignore[misc] # torch is untyped here
    """The three products; operands are cast again in the backward pass, as in torchao."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, weight: torch.Tensor, rowwise: bool) -> torch.Tensor:
        ctx.save_for_backward(x, weight)
        ctx.rowwise = rowwise
        return _product(x, weight, torch.float8_e4m3fn, rowwise, fast=True)

    @staticmethod
    def backward(ctx: Any, *grads: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, None]:
        x, weight = ctx.saved_tensors
        dy = grads[0].contiguous()
        kind = torch.float8_e4m3fn if ctx.rowwise else torch.float8_e5m2
        dx = _product(dy, weight.t(), kind, ctx.rowwise, fast=False)
        dw = _product(dy.t(), x.t(), kind, ctx.rowwise, fast=False)
        return dx, dw, None


def _product(left: torch.Tensor, right: torch.Tensor, kind: torch.dtype, rowwise: bool, *, fast: bool) -> torch.Tensor:
    """Return `left @ right.T` in FP8; both operands are `[rows, inner]`."""
    dim = 1 if rowwise else None
    a, scale_a = quantise(left, kind, dim)
    b, scale_b = quantise(right, torch.float8_e4m3fn, dim)
    return scaled_mm(a, b.t(), scale_a, scale_b.t() if rowwise else scale_b, fast=fast)


class ScaledLinear(nn.Linear):  # type: ignore[misc]
    """`nn.Linear` whose products run in FP8."""

    rowwise: bool = False

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Map `[..., in]` to `[..., out]` in BF16."""
        flat = x.reshape(-1, x.shape[-1])
        y = _ScaledProduct.apply(flat, self.weight, self.rowwise)
        y = y if self.bias is None else y + self.bias.to(y.dtype)
        return y.reshape(*x.shape[:-1], y.shape[-1])


def swap(module: nn.Module, *, rowwise: bool) -> None:
    """Turn every eligible linear layer of a module into a `ScaledLinear`, keeping its parameters."""
    for name, child in list(module.named_modules()):
        if type(child) is nn.Linear and is_eligible(child, name):
            child.__class__ = ScaledLinear
            child.rowwise = rowwise


def is_eligible(layer: nn.Module, name: str) -> bool:
    """Return whether FP8 can be used: sizes are multiples of 16. Output layers stay high, as in published recipes."""
    if not isinstance(layer, nn.Linear) or layer.in_features % 16 or layer.out_features % 16:
        return False
    last = name.rsplit(".", 1)[-1]
    return last not in ("lm_head", "output", "head", "decoder", "classifier", "score")
