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


TILE = 128
NVFP4_BLOCK = 16
E2M1_VALUES = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0)
"""By the three bits of exponent and mantissa."""
_shapes_and_layouts = torch.nn.functional.scaled_mm


def checked_block_scaled_mm(
    a: torch.Tensor,
    b: torch.Tensor,
    scales_a: list[torch.Tensor],
    kinds_a: list[Any],
    scales_b: list[torch.Tensor],
    kinds_b: list[Any],
    swizzles_a: list[Any],
    swizzles_b: list[Any],
    output_dtype: torch.dtype,
) -> torch.Tensor:
    """`torch.nn.functional.scaled_mm` of operands with a scale per block; torch checks shapes and layouts itself.

    The rest are the rules of the kernels: scales of 128 on Hopper alone, FP4 from Blackwell on, a row-major left and a
    column-major right operand.
    """
    operands = (a, b, scales_a, kinds_a, scales_b, kinds_b, swizzles_a, swizzles_b)
    with torch.utils._python_dispatch._disable_current_modes():
        shape = _shapes_and_layouts(*map(_without_data, operands), output_dtype=output_dtype).shape
        assert (a.stride(1), b.stride(0)) == (1, 1)
        major, _ = torch.cuda.get_device_capability()
        if a.dtype == torch.float4_e2m1fn_x2:
            assert major >= 10, "FP4 needs Blackwell"
            left, right = (_from_nvfp4(x, scales) for x, scales in ((a, scales_a), (b.t(), scales_b)))
        else:
            assert major == 9, "scales of 128 have kernels on Hopper alone"
            assert a.dtype == b.dtype == torch.float8_e4m3fn
            left = a.float() * _spread(scales_a[0], kinds_a[0], a.shape)
            right = b.t().float() * _spread(scales_b[0], kinds_b[0], b.t().shape)
        product = (left @ right.t()).to(output_dtype)
    assert product.shape == shape
    return product.clone()


def _without_data(value: Any) -> Any:
    """A tensor as the `meta` device holds it, with its strides; in lists too, and anything else as it is."""
    if isinstance(value, list):
        return [_without_data(item) for item in value]
    return value.to("meta") if isinstance(value, torch.Tensor) else value


def _spread(scale: torch.Tensor, kind: Any, shape: torch.Size) -> torch.Tensor:
    """A scale for each element of an operand `[rows, inner]`."""
    if kind == torch.nn.functional.ScalingType.BlockWise128x128:  # [blocks filled up to four, rows of blocks]
        rows = scale.t()[:, : shape[1] // TILE].repeat_interleave(TILE, dim=0)
    else:
        rows = scale
    return rows.repeat_interleave(TILE, dim=1)


def _from_nvfp4(packed: torch.Tensor, scales: list[torch.Tensor]) -> torch.Tensor:
    """The values of an operand `[rows, inner / 2]`, read as the matrix units read them."""
    nibbles = packed.view(torch.uint8)
    codes = torch.stack((nibbles & 15, nibbles >> 4), dim=-1).reshape(packed.shape[0], -1).long()
    values = torch.tensor(E2M1_VALUES)[codes & 7] * torch.where(codes > 7, -1.0, 1.0)
    blocks = values.shape[1] // NVFP4_BLOCK
    row = torch.arange(values.shape[0])[:, None]
    block = torch.arange(blocks)[None, :]
    tile = row // 128 * -(-blocks // 4) + block // 4
    place = tile * 512 + row % 32 * 16 + row % 128 // 32 * 4 + block % 4
    scale = scales[0].float()[place] * scales[1]
    return values * scale.repeat_interleave(NVFP4_BLOCK, dim=1)
