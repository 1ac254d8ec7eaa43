"""`torch._scaled_mm` on the CPU, with the rules that cuBLAS has on Hopper asserted (`aten/src/ATen/native/cuda/
ScaledBlas.cpp` of torch 2.13): layouts, types, sizes and the shapes of scales.
"""

from __future__ import annotations

from typing import Any

import torch

FP8 = (torch.float8_e4m3fn, torch.float8_e5m2)


def checked_scaled_mm(
    a: torch.Tensor,
    b: torch.Tensor,
    scale_a: torch.Tensor | None = None,
    scale_b: torch.Tensor | None = None,
    bias: torch.Tensor | None = None,
    scale_result: torch.Tensor | None = None,
    out_dtype: torch.dtype | None = None,
    use_fast_accum: bool = False,
) -> torch.Tensor:
    """`(a * scale_a) @ (b * scale_b)`."""
    assert scale_a is not None, "scales are required"
    assert scale_b is not None, "scales are required"
    _check_operands(a, b)
    _check_scales(a, b, scale_a, scale_b, out_dtype)
    product = (a.float() * scale_a) @ (b.float() * scale_b)
    return (product if bias is None else product + bias).to(out_dtype or a.dtype)


def _check_operands(a: torch.Tensor, b: torch.Tensor) -> None:
    assert a.dim() == b.dim() == 2
    assert a.dtype in FP8, a.dtype
    assert b.dtype in FP8, b.dtype
    assert (a.dtype, b.dtype) != (torch.float8_e5m2, torch.float8_e5m2), "two operands of e5m2 have no kernel"
    assert a.stride(1) == 1, "`a` must be row-major"
    assert a.stride(0) >= a.shape[1]
    assert b.stride(0) == 1, "`b` must be column-major"
    assert b.stride(1) >= b.shape[0]
    assert a.shape[1] == b.shape[0]
    assert a.shape[1] % 16 == 0, f"inner size {a.shape[1]} is no multiple of 16"
    assert b.shape[0] % 16 == b.shape[1] % 16 == 0, f"{tuple(b.shape)} are no multiples of 16"


def _check_scales(a: torch.Tensor, b: torch.Tensor, scale_a: torch.Tensor, scale_b: torch.Tensor, out: Any) -> None:
    assert scale_a.dtype == scale_b.dtype == torch.float32
    if scale_a.numel() == 1 and scale_b.numel() == 1:
        return
    assert tuple(scale_a.shape) == (a.shape[0], 1), f"scales {tuple(scale_a.shape)} of rows of {tuple(a.shape)}"
    assert tuple(scale_b.shape) == (1, b.shape[1]), f"scales {tuple(scale_b.shape)} of columns of {tuple(b.shape)}"
    assert scale_a.is_contiguous()
    assert scale_b.is_contiguous()
    assert out == torch.bfloat16, "row-wise products come in BF16"
