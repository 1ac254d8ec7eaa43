"""Products of operands with a scale per block on the device's own matrix units, by `torch.nn.functional.scaled_mm`.

The operands equal those of `formats.scales` bit for bit. Sources for the layouts of their scales: cuBLAS, "Scaling
Factors Layouts" (https://docs.nvidia.com/cuda/cublas/), and pytorch/pytorch#166752.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from planner.lazy import dataclass
from probes.numerics.formats.elements import find_format
from probes.numerics.formats.scales import TILE, blockwise_parts, nvfp4_parts
from probes.numerics.lowering.recipes import LowerRecipe

SCALE_ROWS, SCALE_COLUMNS = 128, 4
"""Size of a tile in the swizzled layout of scales; its four groups of 32 rows are stored side by side."""
SCALE_QUARTER = 32
PADDED_SCALES = 4
"""The number of 128 x 128 scales along the inner dimension is padded to a multiple of this."""
SIGN, NIBBLE = 8, 4
"""Sign bit of an E2M1 number, and bits per number."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Operand:
    """One operand of a scaled product, in the form that the device takes."""

    values: torch.Tensor
    """`[rows, inner]`, row-major; one element holds two FP4 numbers."""
    scales: list[torch.Tensor]
    kinds: list[Any]
    """`ScalingType` of each tensor of scales."""
    swizzles: list[Any]
    """`SwizzleType` of each tensor of scales."""


def block_operand(x: torch.Tensor, element_id: str, is_weight: bool) -> Operand:
    """Make an FP8 operand with an FP32 scale per 128 elements along the inner dimension, or per 128 x 128 of a weight.

    Args:
        x: `[rows, inner]`, FP32; both multiples of 128.
        element_id: id of its format.
        is_weight: whether 128 rows share a scale.
    """
    from torch.nn.functional import ScalingType, SwizzleType

    values, scale = blockwise_parts(x, find_format(element_id), is_weight)
    by_inner = scale.squeeze(-1).t()  # [blocks, rows]
    if is_weight:
        by_inner = by_inner[:, ::TILE]
        by_inner = torch.nn.functional.pad(by_inner, (0, 0, 0, -by_inner.shape[0] % PADDED_SCALES))
        scales = _dense_copy(by_inner.t()).t()  # neighbouring blocks of the inner dimension are adjacent
    else:
        scales = _dense_copy(by_inner).t()  # neighbouring rows are adjacent
    return Operand(
        values=values.reshape(x.shape).to(torch.float8_e4m3fn).contiguous(),
        scales=[scales],
        kinds=[ScalingType.BlockWise128x128 if is_weight else ScalingType.BlockWise1x128],
        swizzles=[SwizzleType.NO_SWIZZLE],
    )


def nvfp4_operand(x: torch.Tensor, element_id: str, is_weight: bool) -> Operand:
    """Make an FP4 operand with an E4M3 scale per 16 elements along the inner dimension and an FP32 scale per tensor.

    Args:
        x: `[rows, inner]`, FP32; the inner size a multiple of 32.
        element_id: id of its format.
        is_weight: whether 16 rows have equal scales.
    """
    from torch.nn.functional import ScalingType, SwizzleType

    values, scale, whole = nvfp4_parts(x, find_format(element_id), is_weight)
    return Operand(
        values=packed_e2m1(values.reshape(x.shape).contiguous()),
        scales=[swizzled(scale.squeeze(-1)).to(torch.float8_e4m3fn), whole],
        kinds=[ScalingType.BlockWise1x16, ScalingType.TensorWise],
        swizzles=[SwizzleType.SWIZZLE_32_4_4, SwizzleType.NO_SWIZZLE],
    )


def _dense_copy(x: torch.Tensor) -> torch.Tensor:
    """Return a copy whose last dimension is dense; `contiguous` would keep the strides of a dimension of size one."""
    return x.clone(memory_format=torch.contiguous_format)


BY_SCALING: dict[str, Callable[[torch.Tensor, str, bool], Operand]] = {
    "blockwise": block_operand, "nvfp4": nvfp4_operand,
}  # fmt: skip
"""Functions that make operands, by scaling."""


def multiplied(
    left: torch.Tensor, right: torch.Tensor, recipe: LowerRecipe, *, gradient: bool = False, weight: bool = False
) -> torch.Tensor:
    """Return `left @ right.T` of the quantised operands, rounded to BF16 and held in FP32.

    Args:
        left: `[rows, inner]`.
        right: `[columns, inner]`.
        recipe: a recipe whose scaling is in `BY_SCALING`.
        gradient: whether the left operand is a gradient.
        weight: whether the right operand is a weight.

    Raises:
        RuntimeError: the device, the driver or torch lacks this product.
    """
    if not hasattr(torch.nn.functional, "scaled_mm"):
        raise RuntimeError("scales per block need torch.nn.functional.scaled_mm, which torch 2.10 introduced")
    operand = BY_SCALING[recipe.scaling]
    a = operand(left.float(), recipe.gradient_format if gradient else recipe.forward_format, False)
    b = operand(right.float(), recipe.forward_format, weight)
    product = torch.nn.functional.scaled_mm(
        a.values, b.values.t(), a.scales, a.kinds, b.scales, b.kinds, a.swizzles, b.swizzles,
        output_dtype=torch.bfloat16,
    )  # fmt: skip
    return product.float()


def packed_e2m1(values: torch.Tensor) -> torch.Tensor:
    """Pack numbers of E2M1 two to a byte, the first in the low four bits: `[rows, n]` to `[rows, n / 2]`."""
    doubled = values.abs().mul(2.0)  # 0, 1, 2, 3, 4, 6, 8 or 12, whose codes are 0 to 7
    code = torch.where(doubled < 4.0, doubled, torch.where(doubled < 8.0, doubled / 2.0 + 2.0, doubled / 4.0 + 4.0))
    nibbles = code.to(torch.uint8) | torch.signbit(values).to(torch.uint8) * SIGN
    return (nibbles[:, ::2] | nibbles[:, 1::2] << NIBBLE).view(torch.float4_e2m1fn_x2)


def swizzled(scale: torch.Tensor) -> torch.Tensor:
    """Return scales `[rows, blocks]` in the order in which the matrix units read them, zero-padded to whole tiles.

    A tile has 128 rows of 4 scales; its rows r, r + 32, r + 64 and r + 96 are stored side by side.
    """
    rows, columns = scale.shape
    filled = torch.nn.functional.pad(scale, (0, -columns % SCALE_COLUMNS, 0, -rows % SCALE_ROWS))
    quarters, tiles_across = SCALE_ROWS // SCALE_QUARTER, filled.shape[1] // SCALE_COLUMNS
    tiles = filled.reshape(-1, quarters, SCALE_QUARTER, tiles_across, SCALE_COLUMNS)
    return tiles.permute(0, 3, 2, 1, 4).reshape(-1)
