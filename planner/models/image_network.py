"""The operations of a vision model in one training step: convolutions, products and attention by shape, and passes.

Everything is per image, at one image size. `at_size` scales the quantities that depend on the area to another size.
"""

from __future__ import annotations

from dataclasses import replace
from math import isqrt

from planner.lazy import dataclass

GLOBAL_HEADS = 64
"""Attention with more sequences per image than this is windowed: a larger image has more windows, not longer ones."""
FEW_ROWS = 3.0
"""Products of at most this many rows per image follow the pooling (class or distillation tokens) and do not scale with
the area."""
CONVOLUTIONAL = 0.5
"""Share of the FLOP in convolutions from which a model is called a convolutional network."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Convolution:
    """All convolutions of one shape."""

    inputs: int
    """Input channels of one group."""
    outputs: int
    """Output channels of all groups."""
    groups: int
    taps: int
    """Elements of the convolution kernel: 9 for 3x3."""
    pixels: float
    """Output pixels of one image."""
    input_pixels: float
    count: int
    reads_image: bool = False
    """Whether its input is the image, which needs no gradient."""

    @property
    def depthwise(self) -> bool:
        """Whether every group has one input channel."""
        return self.groups > 1 and self.inputs == 1

    @property
    def stride(self) -> int:
        """Input pixels per output pixel along a side; 0 if the output is larger (transposed convolution)."""
        return round((self.input_pixels / self.pixels) ** 0.5) if self.pixels else 1

    @property
    def flop(self) -> float:
        """Forward FLOP per image of all these convolutions."""
        return 2.0 * self.pixels * self.outputs * self.inputs * self.taps * self.count


@dataclass(frozen=True, slots=True, kw_only=True)
class Product:
    """All linear layers of one shape: `m x k` times `k x n`, with `m` rows per image."""

    m: float
    n: int
    k: int
    count: int

    @property
    def flop(self) -> float:
        """Forward FLOP per image of all these linear layers."""
        return 2.0 * self.m * self.n * self.k * self.count


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchedProduct:
    """All products of activations with activations of one shape, `batch` products per image."""

    batch: float
    m: float
    n: float
    k: float
    count: int

    @property
    def flop(self) -> float:
        """Forward FLOP per image of all these products."""
        return 2.0 * self.batch * self.m * self.n * self.k * self.count


@dataclass(frozen=True, slots=True, kw_only=True)
class Attention:
    """All attention cores of one shape; `heads` is multiplied by the number of windows per image."""

    heads: float
    queries: float
    keys: float
    head_dim: int
    count: int

    @property
    def flop(self) -> float:
        """Forward FLOP per image of all these attention cores."""
        return 4.0 * self.heads * self.queries * self.keys * self.head_dim * self.count


@dataclass(frozen=True, slots=True, kw_only=True)
class Traffic:
    """Bytes that operations other than products read and write, forward and backward, and bytes kept in between.

    Each operation reads its inputs and writes its outputs once. Activations have two bytes (with autocast, which leaves
    some of them in FP32 at four bytes) or four bytes.
    """

    batch_norm: float
    """Per image, like the next five fields."""
    layer_norm: float
    """Layer and group norms."""
    pointwise: float
    """Activations, additions, scalings, softmax outside attention, loss."""
    copy: float
    """Casts, concatenations, transposes."""
    reduce: float
    """Means and sums: pooling over the whole image, gradients of biases."""
    pool: float
    """Local pooling and resizing."""
    weights: float
    """Per micro-batch: casts and normalisations of weights."""
    saved: float
    """Bytes per image that are kept from the forward to the backward pass."""
    kernels: float
    """Number of kernels launched per micro-batch, forward and backward."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ImageNetwork:
    """A vision model at one image size."""

    name: str
    image_size: int
    """Pixels along a side."""
    params: float
    tensors: int
    """Number of parameter tensors, over which the optimizer loops."""
    convolutions: tuple[Convolution, ...]
    products: tuple[Product, ...]
    batched: tuple[BatchedProduct, ...]
    attention: tuple[Attention, ...]
    half: Traffic
    """Traffic with 16-bit autocast."""
    full: Traffic
    """Traffic with 32-bit activations."""

    @property
    def convolution_flop(self) -> float:
        """Forward FLOP of one image in convolutions."""
        return sum(layer.flop for layer in self.convolutions)

    @property
    def flop_per_image(self) -> float:
        """Forward FLOP of one image."""
        linear = sum(layer.flop for layer in self.products) + sum(layer.flop for layer in self.batched)
        return self.convolution_flop + linear + sum(core.flop for core in self.attention)

    @property
    def is_convolutional(self) -> bool:
        """Whether at least half of its FLOP are in convolutions."""
        return self.convolution_flop >= CONVOLUTIONAL * self.flop_per_image

    @property
    def usual_optimizer(self) -> str:
        """Id of the usual optimizer of such networks: SGD with momentum if mostly convolutions, otherwise AdamW."""
        return "sgd-momentum" if self.is_convolutional else "adamw"

    @property
    def patch(self) -> int | None:
        """Side in pixels of the patches into which a transformer cuts an image; None if it cuts none."""
        first = next((layer for layer in self.convolutions if layer.reads_image), None)
        if first is None or not (self.attention or len(self.convolutions) == 1):
            return None
        side = isqrt(first.taps)
        return side if first.pixels == (self.image_size // side) ** 2 else None

    def traffic(self, activation_bytes: float) -> Traffic:
        """The traffic with activations of `activation_bytes` per element."""
        return self.half if activation_bytes < 4 else self.full

    def at_size(self, image_size: int) -> ImageNetwork:
        """This model at another image size.

        Convolutions, passes and rows of products scale with the area, global attention with its square. This is exact
        if the strides divide both sizes, except that the few tokens that are not part of the image are scaled too.
        """
        if image_size == self.image_size:
            return self
        area = (image_size / self.image_size) ** 2
        return replace(
            self,
            image_size=image_size,
            convolutions=tuple(_scaled_convolution(layer, area) for layer in self.convolutions),
            products=tuple(replace(p, m=p.m if p.m <= FEW_ROWS else p.m * area) for p in self.products),
            batched=tuple(replace(p, batch=p.batch * area) for p in self.batched),
            attention=tuple(_scaled_attention(core, area) for core in self.attention),
            half=_scaled_traffic(self.half, area),
            full=_scaled_traffic(self.full, area),
        )


def _scaled_convolution(layer: Convolution, area: float) -> Convolution:
    if layer.input_pixels <= 1.0:  # squeeze-excite, after the pooling
        return layer
    return replace(layer, pixels=max(1.0, layer.pixels * area), input_pixels=layer.input_pixels * area)


def _scaled_attention(core: Attention, area: float) -> Attention:
    if core.heads > GLOBAL_HEADS:
        return replace(core, heads=core.heads * area)
    few = core.queries <= FEW_ROWS
    return replace(core, queries=core.queries if few else core.queries * area, keys=core.keys * area)


def _scaled_traffic(traffic: Traffic, area: float) -> Traffic:
    per_image = ("batch_norm", "layer_norm", "pointwise", "copy", "reduce", "pool", "saved")
    return replace(traffic, **{name: getattr(traffic, name) * area for name in per_image})
