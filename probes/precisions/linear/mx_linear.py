"""MXFP8 linear layers and products on torchao's MX tensors."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any

import torch
from torch import nn

from probes.precisions.linear.products import high_operands, rotate
from probes.precisions.linear.scaled_linear import is_eligible

if TYPE_CHECKING:
    from probes.device.device import Device

BLOCK = 32
"""Elements that share one scale (OCP Microscaling Formats v1.0)."""


def _torchao() -> Any:
    try:
        return import_module("torchao.prototype.moe_training.mxfp8_linear")
    except ModuleNotFoundError:
        return import_module("torchao.prototype.mx_formats.mx_linear")  # its place in torchao 0.17


class MxLinear(nn.Linear):  # type: ignore[misc]
    """`nn.Linear` whose three products run in MXFP8."""

    emulate: bool = False

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Map `[..., in]` to `[..., out]`."""
        ao = _torchao()
        kernel = ao.KernelPreference.EMULATED if self.emulate else ao.KernelPreference.AUTO
        y = ao._to_mxfp8_then_scaled_mm(x, self.weight, kernel, ao.ScaleCalculationMode.RCEIL)
        return y if self.bias is None else y + self.bias.to(y.dtype)


def swap(module: nn.Module, *, emulate: bool) -> None:
    """Turn every eligible linear layer whose sizes are multiples of the block into an `MxLinear`."""
    for name, child in list(module.named_modules()):
        fits = isinstance(child, nn.Linear) and not (child.in_features % BLOCK or child.out_features % BLOCK)
        if type(child) is nn.Linear and fits and is_eligible(child, name):
            child.__class__ = MxLinear
            child.emulate = emulate


def make_mx(role: str, M: int, N: int, K: int, device: Device, copies: int, *, emulate: bool) -> Callable[[], None]:
    """Return a function that computes `left @ right` of MXFP8 operands cast beforehand.

    The scales are put into the order of the matrix units beforehand too; otherwise torchao would do that in each call,
    and its kernels would be timed with the product.
    """
    ao = _torchao()
    kernel = ao.KernelPreference.EMULATED if emulate else ao.KernelPreference.AUTO
    calls: list[Callable[[], object]] = []
    for _ in range(copies):
        left, right = high_operands(role, M, N, K, device)
        a, b = (_cast(ao, operand.to(torch.bfloat16).contiguous(), kernel) for operand in (left, right.t()))
        calls.append(partial(torch.mm, a, b.t()))
    return rotate(calls)


def _cast(ao: Any, x: torch.Tensor, kernel: Any) -> Any:
    scaling = ao.ScaleCalculationMode.RCEIL
    return ao.MXTensor.to_mx(x, torch.float8_e4m3fn, BLOCK, scaling, kernel, is_swizzled_scales=True)
