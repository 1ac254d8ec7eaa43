"""Operands of bare matrix products, in the layouts of training. Data are random, never zeros, which run faster."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import cycle
from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    from probes.device.device import Device

E4M3_MAX = 448.0
E5M2_MAX = 57344.0


def shape_of(role: str, M: int, N: int, K: int) -> tuple[int, int, int]:
    """Return rows, inner size and columns of the product of a role, for a layer `[M, K] x [K, N]`."""
    return {"forward": (M, K, N), "dgrad": (M, N, K), "wgrad": (N, M, K)}[role]


def _random(rows: int, columns: int, device: Device) -> torch.Tensor:
    return torch.randn(rows, columns, device=device.torch, dtype=torch.float32)


def high_operands(role: str, M: int, N: int, K: int, device: Device) -> tuple[torch.Tensor, torch.Tensor]:
    """Return left and right operands as training holds them: views of row-major activations, gradients and weights."""
    if role == "forward":
        return _random(M, K, device), _random(N, K, device).t()
    if role == "dgrad":
        return _random(M, N, device), _random(N, K, device)
    return _random(M, N, device).t(), _random(M, K, device)


def rotate(calls: list[Callable[[], object]]) -> Callable[[], None]:
    """Return a function that makes the calls in turn, so that operands do not stay in the cache between calls."""
    turn = cycle(calls)

    def product() -> None:
        next(turn)()

    return product


def make_dense(operand: str, role: str, M: int, N: int, K: int, device: Device, copies: int) -> Callable[[], None]:
    """Return a function that computes `[rows, inner] x [inner, columns]` by `torch.mm`."""
    dtype = getattr(torch, operand)
    rows, _, columns = shape_of(role, M, N, K)
    out = torch.empty(rows, columns, device=device.torch, dtype=dtype)
    calls: list[Callable[[], object]] = []
    for _ in range(copies):
        left, right = (tensor.to(dtype) for tensor in high_operands(role, M, N, K, device))
        calls.append(partial(torch.mm, left, right, out=out))
    return rotate(calls)


def make_scaled(
    role: str, M: int, N: int, K: int, device: Device, copies: int, *, rowwise: bool, gradient: torch.dtype
) -> Callable[[], None]:
    """Return a function that multiplies FP8 operands, cast beforehand, by `torch._scaled_mm`.

    Only the forward product uses fast accumulation.
    """
    calls: list[Callable[[], object]] = []
    for _ in range(copies):
        left, right = high_operands(role, M, N, K, device)
        a, scale_a = quantise(left, torch.float8_e4m3fn if role == "forward" else gradient, dim=1 if rowwise else None)
        b, scale_b = quantise(right.t(), torch.float8_e4m3fn, dim=1 if rowwise else None)
        scale_b = scale_b.t() if rowwise else scale_b
        calls.append(partial(scaled_mm, a, b.t(), scale_a, scale_b, fast=role == "forward"))
    return rotate(calls)


def quantise(x: torch.Tensor, dtype: torch.dtype, dim: int | None) -> tuple[torch.Tensor, torch.Tensor]:
    """Return FP8 values, row-major, and the FP32 scales that restore them.

    Args:
        x: `[rows, columns]`.
        dtype: `float8_e4m3fn` or `float8_e5m2`.
        dim: 1 for a scale per row, `[rows, 1]`; None for one scale.
    """
    largest = E4M3_MAX if dtype == torch.float8_e4m3fn else E5M2_MAX
    amax = x.abs().amax() if dim is None else x.abs().amax(dim=dim, keepdim=True)
    scale = amax.float().clamp(min=1e-12) / largest
    if dim is not None:  # power-of-two scales, as in torchao's row-wise recipe
        scale = torch.exp2(torch.ceil(torch.log2(scale)))
    return (x.float() / scale).clamp(-largest, largest).to(dtype).contiguous(), scale


def scaled_mm(
    a: torch.Tensor, b: torch.Tensor, scale_a: torch.Tensor, scale_b: torch.Tensor, *, fast: bool
) -> torch.Tensor:
    """Multiply FP8 operands, `a @ b` (`a` row-major, `b` column-major), with a BF16 result.

    Row-wise without fast accumulation, the product is computed without scales and scaled afterwards, as in torchao:
    Hopper's row-wise kernel is slow in that mode.
    """
    multiply = partial(torch._scaled_mm, a, b, out_dtype=torch.bfloat16, use_fast_accum=fast)
    if scale_a.dim() == 0 or fast:
        return multiply(scale_a=scale_a, scale_b=scale_b)
    unit = scale_a.new_ones(())
    return multiply(scale_a=unit, scale_b=unit).mul_(scale_a * scale_b)
