"""Scaled formats: which elements share a scale, and how it is chosen; quantised and restored exactly.

| scaling | elements of one scale | scale | source |
|---|---|---|---|
| `tensorwise` | the tensor | FP32, maximum to the largest number | Micikevicius et al. (arXiv 2209.05433), section 4 |
| `rowwise` | a row along the product's inner dimension | a power of two, rounded up | torchao `float8`, `rowwise` |
| `blockwise` | 128 along it, or 128 x 128 of a weight | FP32 | DeepSeek-V3 (arXiv 2412.19437), section 3.3.2 |
| `mx` | 32 along it | a power of two, rounded up (E8M0) | OCP MX v1.0; Mishra et al. (arXiv 2506.08027) |
| `nvfp4` | 16 along it | E4M3, and one FP32 scale of the tensor | NVIDIA (arXiv 2509.25149), section 2 |
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from probes.numerics.formats.elements import ElementFormat, find_format, rounded

if TYPE_CHECKING:
    import torch

TINY = 1e-12
"""Least maximum that a scale is made from, so that a tensor of zeros has one."""
TILE = 128
"""Elements of a tile of `blockwise`."""
MX_BLOCK = 32
NVFP4_BLOCK = 16
E8M0_LEAST, E8M0_LARGEST = 2.0**-127, 2.0**127
"""Range of a power of two that is a scale (OCP Microscaling Formats v1.0, section 5.4.1)."""

Quantise = Callable[["torch.Tensor", ElementFormat, bool], "torch.Tensor"]
"""`(values, format, is_weight)`: the last dimension is the product's inner one."""


def power_of_two_scale(largest_seen: torch.Tensor, element: ElementFormat) -> torch.Tensor:
    """The least power of two that brings a maximum to at most the format's largest number."""
    import torch

    mantissa, exponent = torch.frexp(largest_seen.clamp(min=TINY) / element.largest)
    power = torch.where(mantissa == 0.5, exponent - 1, exponent)  # a power of two is its own
    return torch.ldexp(torch.ones_like(mantissa), power).clamp(E8M0_LEAST, E8M0_LARGEST)


def tensorwise(x: torch.Tensor, element: ElementFormat, is_weight: bool = False) -> torch.Tensor:
    """One scale: the maximum goes to the format's largest number."""
    scale = x.abs().amax().clamp(min=TINY) / element.largest
    return rounded(x / scale, element) * scale


def rowwise(x: torch.Tensor, element: ElementFormat, is_weight: bool = False) -> torch.Tensor:
    """One power of two for each row."""
    scale = power_of_two_scale(x.abs().amax(dim=-1, keepdim=True), element)
    return rounded(x / scale, element) * scale


def mx(x: torch.Tensor, element: ElementFormat, is_weight: bool = False) -> torch.Tensor:
    """One power of two for 32 elements."""
    blocks = _blocks(x, MX_BLOCK)
    scale = power_of_two_scale(blocks.abs().amax(dim=-1, keepdim=True), element)
    return _joined(rounded(blocks / scale, element) * scale, x)


def blockwise(x: torch.Tensor, element: ElementFormat, is_weight: bool = False) -> torch.Tensor:
    """One scale for 128 elements of an activation or gradient, for 128 x 128 of a weight."""
    import torch

    blocks = _blocks(x, TILE)  # [..., rows, blocks, 128]
    largest_seen = blocks.abs().amax(dim=-1, keepdim=True)
    if is_weight and x.dim() == 2:
        rows = x.shape[0]
        padded = torch.nn.functional.pad(largest_seen, (0, 0, 0, 0, 0, -rows % TILE))
        tiles = padded.reshape(-1, TILE, *padded.shape[1:]).amax(dim=1, keepdim=True)
        largest_seen = tiles.expand(-1, TILE, -1, -1).reshape(padded.shape)[:rows]
    scale = largest_seen.clamp(min=TINY) / element.largest
    return _joined(rounded(blocks / scale, element) * scale, x)


def nvfp4(x: torch.Tensor, element: ElementFormat, is_weight: bool = False) -> torch.Tensor:
    """One E4M3 scale for 16 elements, below one FP32 scale of the tensor.

    Rounding is to nearest: the published recipe rounds gradients stochastically and rotates some operands as well.
    """
    scales = find_format("e4m3")
    whole = x.abs().amax().clamp(min=TINY) / (scales.largest * element.largest)
    blocks = _blocks(x, NVFP4_BLOCK)
    wanted = blocks.abs().amax(dim=-1, keepdim=True) / element.largest / whole
    scale = rounded(wanted, scales).clamp(min=scales.smallest) * whole
    return _joined(rounded(blocks / scale, element) * scale, x)


SCALINGS: dict[str, Quantise] = {
    "tensorwise": tensorwise, "rowwise": rowwise, "blockwise": blockwise, "mx": mx, "nvfp4": nvfp4,
}  # fmt: skip
"""By name, as in `policies.csv`."""


def _blocks(x: torch.Tensor, size: int) -> torch.Tensor:
    """`[..., n]` to `[..., blocks, size]`, the last one filled up with zeros, which change no maximum."""
    import torch

    short = -x.shape[-1] % size
    padded = torch.nn.functional.pad(x, (0, short)) if short else x
    return padded.reshape(*x.shape[:-1], -1, size)


def _joined(blocks: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    """`[..., blocks, size]` back to the shape of `x`."""
    return blocks.reshape(*x.shape[:-1], -1)[..., : x.shape[-1]]
