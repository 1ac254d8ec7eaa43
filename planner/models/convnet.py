"""Convolutional networks as tables of convolutions, and the `ModelShape` that represents one.

A convolution is an implicit matrix product: `m = batch x output pixels`, `n = output channels`, `k = input channels x
kernel area` (cuDNN, Chetlur et al., arXiv 1410.0759).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from planner.models.shape import ModelShape


@dataclass(frozen=True, slots=True, kw_only=True)
class Convolution:
    """One convolution with the batch norm that follows it."""

    inputs: int
    outputs: int
    kernel: int
    pixels: int
    """Output pixels of one image."""
    input_pixels: int
    relu: bool = True
    residual: bool = False
    """Its result is added to a shortcut before the ReLU."""

    @property
    def flop(self) -> float:
        """Forward FLOP of one image."""
        return 2.0 * self.pixels * self.outputs * self.inputs * self.kernel**2

    @property
    def params(self) -> float:
        """Weights, and scale and shift of the norm."""
        return self.inputs * self.outputs * self.kernel**2 + 2.0 * self.outputs

    @property
    def elements(self) -> float:
        """Output elements of one image."""
        return float(self.pixels * self.outputs)


@dataclass(frozen=True, slots=True, kw_only=True)
class Network:
    """A convolutional network for classification."""

    name: str
    convolutions: tuple[Convolution, ...]
    features: int
    classes: int

    @property
    def params(self) -> float:
        """All parameters."""
        return sum(layer.params for layer in self.convolutions) + (self.features + 1) * self.classes

    @property
    def flop_per_image(self) -> float:
        """Forward FLOP of one image."""
        return sum(layer.flop for layer in self.convolutions) + 2.0 * self.features * self.classes

    @property
    def elements_per_image(self) -> float:
        """Output elements of all convolutions of one image."""
        return sum(layer.elements for layer in self.convolutions)


_BLOCKS = {50: (3, 4, 6, 3), 101: (3, 4, 23, 3), 152: (3, 8, 36, 3)}
"""Bottleneck blocks per stage (He et al., arXiv 1512.03385, table 1)."""


@cache
def resnet(depth: int, image: int = 224) -> Network:
    """ResNet v1.5 with bottleneck blocks: the stride lies in the 3x3 convolution (NVIDIA DeepLearningExamples).

    Raises:
        KeyError: no such depth.
    """
    side = image // 2
    layers = [Convolution(inputs=3, outputs=64, kernel=7, pixels=side**2, input_pixels=image**2)]
    side //= 2
    channels = 64
    for stage, blocks in enumerate(_BLOCKS[depth]):
        middle, out = 64 * 2**stage, 256 * 2**stage
        for block in range(blocks):
            before = side**2
            if block == 0 and stage > 0:
                side //= 2
            after = side**2
            layers.append(Convolution(inputs=channels, outputs=middle, kernel=1, pixels=before, input_pixels=before))
            layers.append(Convolution(inputs=middle, outputs=middle, kernel=3, pixels=after, input_pixels=before))
            if block == 0:
                layers.append(
                    Convolution(inputs=channels, outputs=out, kernel=1, pixels=after, input_pixels=before, relu=False)
                )
            layers.append(
                Convolution(inputs=middle, outputs=out, kernel=1, pixels=after, input_pixels=after, residual=True)
            )
            channels = out
    return Network(name=f"resnet-{depth}", convolutions=tuple(layers), features=channels, classes=1000)


def find_network(name: str) -> Network | None:
    """The network that a name starts with (`ResNet-50 v1.5`, `resnet50`), or None."""
    compact = "".join(c for c in name.lower() if c.isalnum())
    depth = next((depth for depth in _BLOCKS if compact.startswith(f"resnet{depth}")), None)
    return None if depth is None else resnet(depth)


def network_of(shape: ModelShape) -> Network:
    """The network of a shape that `shape_of_network` made.

    Raises:
        ValueError: no network has its name (a programming error).
    """
    network = find_network(shape.name)
    if network is None:
        raise ValueError(f"no convolutional network is called {shape.name}")
    return network


def shape_of_network(network: Network) -> ModelShape:
    """A shape that carries the name and parameter count of a network, and no transformer layers."""
    return ModelShape(
        name=network.name, kind="cnn", layers=len(network.convolutions), hidden=1, heads=1, kv_heads=1, head_dim=0,
        ffn_hidden=0, gated_mlp=False, vocab=round(network.params), context=1, tied_embeddings=True,
    )  # fmt: skip
