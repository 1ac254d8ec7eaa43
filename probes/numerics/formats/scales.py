"""Scaled formats: which elements share a scale, and how it is chosen. Values are quantised and restored exactly.

| scaling | elements of one scale | scale | source |
|---|---|---|---|
| `tensorwise` | the tensor | FP32, maximum to the largest number | Micikevicius et al. (arXiv 2209.05433), section 4 |
| `rowwise` | a row along the product's inner dimension | a power of two, rounded up | torchao `float8`, `rowwise` |
| `blockwise` | 128 along it, or 128 x 128 of a weight | FP32 | DeepSeek-V3 (arXiv 2412.19437), section 3.3.2 |
| `mx` | 32 along it | a power of two, rounded up (E8M0) | OCP MX v1.0; Mishra et al. (arXiv 2506.08027) |
| `nvfp4` | 16 along it, or 16 x 16 of a weight | E4M3, and one FP32 per tensor | NVIDIA (arXiv 2509.25149), section 2 |
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from probes.numerics.formats.elements import ElementFormat, find_format, rounded

if TYPE_CHECKING:
    import torch

EPS = 1e-12
"""Least maximum from which an FP32 scale is made, so that zeros have a scale; `EPS` in torchao's `float8_utils`."""
TILE = 128
"""Elements per tile of `blockwise`."""
MX_BLOCK = 32
NVFP4_BLOCK = 16
E8M0_LEAST, E8M0_LARGEST = 2.0**-127, 2.0**127
"""Range of a power-of-two scale (OCP Microscaling Formats v1.0, section 5.4.1)."""

Quantise = Callable[["torch.Tensor", ElementFormat, bool], "torch.Tensor"]
"""`(values, format, is_weight)`; the last dimension is the inner dimension of the product."""


def power_of_two_scale(largest_seen: torch.Tensor, element: ElementFormat) -> torch.Tensor:
    """Return the least power of two that, as a divisor, brings a maximum to at most the format's largest number.

    A maximum of zero gets a scale of 1. An infinite or NaN maximum is returned as the scale, so that it stays visible.
    """
    import torch

    mantissa, exponent = torch.frexp(largest_seen / element.largest)
    power = torch.where(mantissa == 0.5, exponent - 1, exponent)  # an exact power of two is not rounded up
    scale = torch.ldexp(torch.ones_like(mantissa), power)
    return torch.where(torch.isfinite(largest_seen), scale, largest_seen)


def tensorwise(x: torch.Tensor, element: ElementFormat, is_weight: bool = False) -> torch.Tensor:
    """Quantise with one scale, which maps the maximum to the format's largest number."""
    scale = x.abs().amax().clamp(min=EPS) / element.largest
    return rounded(x / scale, element) * scale


def rowwise(x: torch.Tensor, element: ElementFormat, is_weight: bool = False) -> torch.Tensor:
    """Quantise with one power-of-two scale per row."""
    scale = power_of_two_scale(x.abs().amax(dim=-1, keepdim=True).clamp(min=EPS), element)
    return rounded(x / scale, element) * scale


def mx(x: torch.Tensor, element: ElementFormat, is_weight: bool = False) -> torch.Tensor:
    """Quantise with one E8M0 scale per 32 elements. An infinity stays infinite; a block with NaN becomes NaN."""
    blocks = _blocks(x, MX_BLOCK)
    scale = power_of_two_scale(blocks.abs().amax(dim=-1, keepdim=True), element).clamp(E8M0_LEAST, E8M0_LARGEST)
    return _joined(rounded(blocks / scale, element) * scale, x)


def blockwise(x: torch.Tensor, element: ElementFormat, is_weight: bool = False) -> torch.Tensor:
    """Quantise with one scale per 128 elements of an activation or gradient, or per 128 x 128 of a weight."""
    values, scale = blockwise_parts(x, element, is_weight)
    return _joined(values * scale, x)


def blockwise_parts(
    x: torch.Tensor, element: ElementFormat, is_weight: bool = False
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return numbers of the format `[..., blocks, 128]` and their FP32 scales `[..., blocks, 1]`.

    The last block is padded with zeros.
    """
    blocks = _blocks(x, TILE)
    scale = _largest_of(blocks, tiled=is_weight).clamp(min=EPS) / element.largest
    return rounded(blocks / scale, element), scale


def nvfp4(x: torch.Tensor, element: ElementFormat, is_weight: bool = False) -> torch.Tensor:
    """Quantise with one E4M3 scale per 16 elements, or per 16 x 16 of a weight, and one FP32 scale per tensor.

    The scales of a weight are the same along both of its dimensions, so that the forward product and the product for
    the input's gradient see the same quantised weight (section 4.3 of the paper). Rounding is to nearest; the published
    recipe also rounds gradients stochastically and rotates some operands.
    """
    values, scale, whole = nvfp4_parts(x, element, is_weight)
    return _joined(values * (scale * whole), x)


def nvfp4_parts(
    x: torch.Tensor, element: ElementFormat, is_weight: bool = False
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return numbers of the format `[..., blocks, 16]`, E4M3 scales `[..., blocks, 1]` and the tensor's FP32 scale."""
    scales = find_format("e4m3")
    whole = x.abs().amax().clamp(min=EPS) / (scales.largest * element.largest)
    blocks = _blocks(x, NVFP4_BLOCK)
    wanted = _largest_of(blocks, tiled=is_weight) / element.largest / whole
    scale = rounded(wanted, scales).clamp(min=scales.smallest)
    return rounded(blocks / (scale * whole), element), scale, whole


SCALINGS: dict[str, Quantise] = {
    "tensorwise": tensorwise, "rowwise": rowwise, "blockwise": blockwise, "mx": mx, "nvfp4": nvfp4,
}  # fmt: skip
"""Scalings by name, as in `policies.csv`."""


def _blocks(x: torch.Tensor, size: int) -> torch.Tensor:
    """Reshape `[..., n]` to `[..., blocks, size]`; the last block is padded with zeros, which change no maximum."""
    import torch

    short = -x.shape[-1] % size
    padded = torch.nn.functional.pad(x, (0, short)) if short else x
    return padded.reshape(*x.shape[:-1], -1, size)


def _largest_of(blocks: torch.Tensor, *, tiled: bool) -> torch.Tensor:
    """Return each block's largest magnitude, `[..., blocks, 1]`; if tiled, `[rows, blocks, n]`, over n rows."""
    import torch

    largest_seen = blocks.abs().amax(dim=-1, keepdim=True)
    if not tiled or blocks.dim() != 3:
        return largest_seen
    rows, tile = blocks.shape[0], blocks.shape[-1]
    padded = torch.nn.functional.pad(largest_seen, (0, 0, 0, 0, 0, -rows % tile))
    tiles = padded.reshape(-1, tile, *padded.shape[1:]).amax(dim=1, keepdim=True)
    return tiles.expand(-1, tile, -1, -1).reshape(padded.shape)[:rows]


def _joined(blocks: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    """Reshape `[..., blocks, size]` back to the shape of `x`."""
    return blocks.reshape(*x.shape[:-1], -1)[..., : x.shape[-1]]
