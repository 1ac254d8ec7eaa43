"""ResNet-50 as a table of convolutions, from its paper alone: what the synthetic GPU runs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Convolution:
    """One convolution with the batch norm that follows it."""

    inputs: int
    outputs: int
    kernel: int
    pixels: int
    """Output pixels of one image."""
    relu: bool = True
    residual: bool = False
    """Its result is added to a shortcut before the ReLU."""


def _resnet_50() -> Iterator[Convolution]:
    """v1.5 at 224 pixels: the stride lies in the 3x3 convolution (He et al., arXiv 1512.03385, table 1)."""
    yield Convolution(inputs=3, outputs=64, kernel=7, pixels=112**2)
    side, channels = 56, 64
    for stage, blocks in enumerate((3, 4, 6, 3)):
        middle, out = 64 * 2**stage, 256 * 2**stage
        for block in range(blocks):
            before = side**2
            if block == 0 and stage > 0:
                side //= 2
            after = side**2
            yield Convolution(inputs=channels, outputs=middle, kernel=1, pixels=before)
            yield Convolution(inputs=middle, outputs=middle, kernel=3, pixels=after)
            if block == 0:
                yield Convolution(inputs=channels, outputs=out, kernel=1, pixels=after, relu=False)
            yield Convolution(inputs=middle, outputs=out, kernel=1, pixels=after, residual=True)
            channels = out


RESNET_50 = tuple(_resnet_50())
RESNET_50_PARAMS = 25_557_032
"""torchvision documentation, resnet50, num_params."""
