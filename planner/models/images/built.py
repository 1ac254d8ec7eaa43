"""Networks built from the dimensions of a configuration: vision transformers, ResNets and ConvNeXts.

Convolutions, products, attention and parameters follow from the dimensions. Memory traffic is taken from a model of the
catalogue with the same blocks, in proportion to the elements that the blocks process.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import fields, replace

from planner.lazy import dataclass
from planner.models.image_network import Attention, Convolution, ImageNetwork, Product, Traffic
from planner.models.images.catalogue import load_image_models, network_of

CLASSES = 1000
"""Number of classes of ImageNet-1k, the output size of the models of the catalogue."""

VIT, BOTTLENECK, BASIC, CONVNEXT = "vit_base_patch16_224", "resnet50", "resnet34", "convnext_base"
"""Reference models of the catalogue, whose blocks represent those of the networks that are built."""

FFN_SHARE = {"pointwise": 0.47, "reduce": 0.44, "saved": 0.44}
"""Share of a transformer block's traffic in its feed-forward part, which is four times as wide as the block.
Element-wise work includes GELU forward and backward, reductions the gradient of its bias, and saved tensors its input
and output (counted in `vit_base_patch16_224`)."""


def _referred(name: str, size: int) -> ImageNetwork:
    return network_of(load_image_models()[name]).at_size(size)


def _scaled(traffic: Traffic, elements: float, tensors: float, params: float, ffn: float = 1.0) -> Traffic:
    """Scale traffic by ratios of elements, parameter tensors and parameters.

    Args:
        traffic: traffic of the reference model.
        elements: ratio of the elements that blocks process.
        tensors: ratio of parameter tensors, to which the number of kernels is proportional.
        params: ratio of parameters.
        ffn: width of the feed-forward part relative to four times the block's width.
    """
    values = {}
    for field in fields(Traffic):
        share = FFN_SHARE.get(field.name, 0.0)
        values[field.name] = getattr(traffic, field.name) * elements * (1.0 - share + share * ffn)
    return Traffic(**(values | {"weights": traffic.weights * params, "kernels": traffic.kernels * tensors}))


@dataclass(frozen=True, slots=True, kw_only=True)
class VisionTransformer:
    """Dimensions of a plain vision transformer (Dosovitskiy et al., arXiv 2010.11929)."""

    layers: int
    hidden: int
    heads: int
    ffn_hidden: int
    patch: int
    image_size: int
    classes: int = CLASSES
    extra_tokens: int = 1
    """Class, distillation and register tokens."""

    def network(self, name: str) -> ImageNetwork:
        """The operations of this vision transformer."""
        h, ffn, pixels = self.hidden, self.ffn_hidden, float((self.image_size // self.patch) ** 2)
        tokens, taps = pixels + self.extra_tokens, self.patch**2
        refer = _referred(VIT, 224)
        block = 4.0 * h * h + 4.0 * h + 2.0 * h * ffn + ffn + h + 4.0 * h
        embedding = 3.0 * taps * h + h + (tokens + self.extra_tokens) * h
        params = self.layers * block + embedding + 2.0 * h + (h + 1.0) * self.classes
        tensors = 12 * self.layers + 8
        elements = self.layers * tokens * h / (12 * 197.0 * 768.0)
        ratios = (elements, tensors / refer.tensors, params / refer.params, ffn / (4.0 * h))
        return ImageNetwork(
            name=name, image_size=self.image_size, params=params, tensors=tensors,
            convolutions=(
                Convolution(inputs=3, outputs=h, groups=1, taps=taps, pixels=pixels, count=1, reads_image=True,
                            input_pixels=float(self.image_size**2)),
            ),
            products=(
                Product(m=tokens, n=3 * h, k=h, count=self.layers), Product(m=tokens, n=h, k=h, count=self.layers),
                Product(m=tokens, n=ffn, k=h, count=self.layers), Product(m=tokens, n=h, k=ffn, count=self.layers),
                Product(m=1.0, n=self.classes, k=h, count=1),
            ),
            batched=(),
            attention=(
                Attention(heads=self.heads, queries=tokens, keys=tokens, head_dim=h // self.heads, count=self.layers),
            ),
            half=_scaled(refer.half, *ratios), full=_scaled(refer.full, *ratios),
        )  # fmt: skip


def _merged(layers: Iterable[Convolution]) -> tuple[Convolution, ...]:
    """Merge convolutions of the same shape, keeping their order."""
    counts: dict[Convolution, int] = {}
    for layer in layers:
        counts[layer] = counts.get(layer, 0) + 1
    return tuple(replace(layer, count=count) for layer, count in counts.items())


def _elements(layers: Iterable[Convolution]) -> float:
    return sum(layer.pixels * layer.outputs * layer.count for layer in layers)


def _weights(layers: Iterable[Convolution]) -> float:
    return sum(float(layer.inputs * layer.outputs * layer.taps * layer.count) for layer in layers)


@dataclass(frozen=True, slots=True, kw_only=True)
class ResNet:
    """Dimensions of a ResNet (He et al., arXiv 1512.03385), with torchvision's stride in the 3x3 convolution."""

    depths: Sequence[int]
    widths: Sequence[int]
    """Output channels of each stage."""
    stem: int
    bottleneck: bool
    image_size: int
    classes: int = CLASSES

    def _convolutions(self) -> Iterable[Convolution]:
        side = -(-self.image_size // 2)

        def layer(inputs: int, outputs: int, taps: int, before: int, after: int, **more: bool) -> Convolution:
            return Convolution(
                inputs=inputs, outputs=outputs, groups=1, taps=taps, pixels=float(after**2),
                input_pixels=float(before**2), count=1, **more,
            )  # fmt: skip

        yield layer(3, self.stem, 49, self.image_size, side, reads_image=True)
        side, channels = -(-side // 2), self.stem
        for stage, (depth, width) in enumerate(zip(self.depths, self.widths, strict=True)):
            for block in range(depth):
                before, after = side, -(-side // 2) if stage and not block else side
                middle = width // 4 if self.bottleneck else width
                if self.bottleneck:
                    yield layer(channels, middle, 1, before, before)
                    yield layer(middle, middle, 9, before, after)
                    yield layer(middle, width, 1, after, after)
                else:
                    yield layer(channels, middle, 9, before, after)
                    yield layer(middle, width, 9, after, after)
                if channels != width or before != after:
                    yield layer(channels, width, 1, before, after)
                side, channels = after, width

    def network(self, name: str) -> ImageNetwork:
        """The operations of this ResNet."""
        layers = _merged(self._convolutions())
        number, features = sum(layer.count for layer in layers), self.widths[-1]
        norms = sum(2.0 * layer.outputs * layer.count for layer in layers)
        params = _weights(layers) + norms + (features + 1.0) * self.classes
        refer = _referred(BOTTLENECK if self.bottleneck else BASIC, 224)
        tensors = 3 * number + 2
        ratios = (_elements(layers) / _elements(refer.convolutions), tensors / refer.tensors, params / refer.params)
        pooled = layers[0].pixels * self.stem / (refer.convolutions[0].pixels * refer.convolutions[0].outputs)
        half, full = (
            replace(_scaled(traffic, *ratios), pool=traffic.pool * pooled) for traffic in (refer.half, refer.full)
        )
        return ImageNetwork(
            name=name, image_size=self.image_size, params=params, tensors=tensors, convolutions=layers,
            products=(Product(m=1.0, n=self.classes, k=features, count=1),), batched=(), attention=(),
            half=half, full=full,
        )  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class ConvNext:
    """Dimensions of a ConvNeXt (Liu et al., arXiv 2201.03545)."""

    depths: Sequence[int]
    widths: Sequence[int]
    patch: int
    image_size: int
    classes: int = CLASSES

    def network(self, name: str) -> ImageNetwork:
        """The operations of this ConvNeXt."""
        side, before, channels = self.image_size // self.patch, self.image_size, 3
        layers: list[Convolution] = []
        products: list[Product] = []
        params = 2.0 * self.widths[0] + 2.0 * self.widths[-1] + (self.widths[-1] + 1.0) * self.classes
        elements = 0.0
        for stage, (depth, width) in enumerate(zip(self.depths, self.widths, strict=True)):
            taps = self.patch**2 if not stage else 4
            pixels = float(side**2)
            layers.append(
                Convolution(inputs=channels, outputs=width, groups=1, taps=taps, pixels=pixels, count=1,
                            input_pixels=float(before**2), reads_image=not stage),
            )  # fmt: skip
            layers.append(
                Convolution(inputs=1, outputs=width, groups=width, taps=49, pixels=pixels, input_pixels=pixels,
                            count=depth),
            )  # fmt: skip
            products.append(Product(m=pixels, n=4 * width, k=width, count=depth))
            products.append(Product(m=pixels, n=width, k=4 * width, count=depth))
            params += channels * width * taps + width + (2.0 * channels if stage else 0.0)
            params += depth * (50.0 * width + 2.0 * width + 8.0 * width * width + 5.0 * width + width)
            elements += depth * pixels * width
            before, side, channels = side, side // 2, width
        refer = _referred(CONVNEXT, 224)
        tensors = 9 * sum(self.depths) + 4 * len(self.depths) + 4
        blocks = sum(p.m * p.k * p.count for p in refer.products if p.n == 4 * p.k)
        ratios = (elements / blocks, tensors / refer.tensors, params / refer.params)
        products.append(Product(m=1.0, n=self.classes, k=self.widths[-1], count=1))
        return ImageNetwork(
            name=name, image_size=self.image_size, params=params, tensors=tensors, convolutions=tuple(layers),
            products=tuple(products), batched=(), attention=(),
            half=_scaled(refer.half, *ratios), full=_scaled(refer.full, *ratios),
        )  # fmt: skip
