"""Time of the operations of a vision model, from the FLOP and bytes of each and the rates of a GPU.

A convolution is an implicit matrix product (cuDNN, Chetlur et al., arXiv 1410.0759): its rate rises with the channels
that it reads and writes, and no layer is faster than its operand traffic. In channels-first networks, convolutions on
tensor cores convert their operands to channels last and back: every one in 16 bits, some in TF32. That takes the rate
of memory or that of the multiprocessors, which transpose them, whichever is lower. Depthwise convolutions and all
operations that are not products are passes over memory.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from planner.lazy import dataclass
from planner.models.image_network import Convolution, ImageNetwork, Traffic
from planner.performance.compute import FLASH_BACKWARD
from planner.performance.operations import MatMul
from planner.performance.products import cast_s
from planner.rates.terms import Rates, Value
from planner.training.recipe import Recipe

Column = npt.NDArray[np.float64]
"""One number for each shape of a network, `[shape, 1, 1]`; the second axis broadcasts over layouts, the third over
draws."""

ROOF = 4.0
"""Order of the norm that combines arithmetic and operand traffic of a layer: close to the greater of the two, and a
fifth above both where they are equal."""
ALIGNED_CHANNELS = 8
"""16-bit tensor cores process channels by eights (NVIDIA, Convolutional Layers User's Guide, "Channels In And Out")."""
UPDATE_KERNELS = 4.0
"""Kernels of the optimizer for each parameter tensor: weight decay, momentum (two), update (PyTorch's SGD)."""
WINOGRAD_TAPS = 9
"""Elements of the 3x3 kernel, for which Winograd's algorithm needs fewer multiplications at stride 1 (Lavin and Gray,
arXiv 1509.09308)."""
GROUPS_AT_BEST = 32.0
"""Number of groups from which a grouped convolution in channels-last order runs at its best rate, as in ResNeXt."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Convolutions:
    """All convolutions of a network, `[shape, 1, 1]` each."""

    inputs: Column
    outputs: Column
    groups: Column
    taps: Column
    flop: Column
    """Forward FLOP per image of all convolutions of the shape."""
    elements: Column
    """Elements per image that all convolutions of the shape read and write in the forward pass."""
    products: Column
    """Number of products per convolution: 3 (forward and two gradients), or 2 if it reads the images themselves."""
    dense: npt.NDArray[np.bool_]
    depthwise: npt.NDArray[np.bool_]
    odd: npt.NDArray[np.bool_]
    """Dense convolutions with channels that are not a multiple of eight, except those that read the images."""
    winograd: npt.NDArray[np.bool_]
    """3x3 kernels of stride 1, for which cuDNN's FP32 kernels save multiplications."""


def _column(values: Iterable[float]) -> Column:
    return np.array(list(values), dtype=np.float64).reshape(-1, 1, 1)


@lru_cache(maxsize=1024)
def _convolutions(layers: tuple[Convolution, ...]) -> _Convolutions:
    """Columns of the convolutions, cached by their shapes: equal networks share them, and no network is kept alive."""
    inputs, outputs = _column(c.inputs for c in layers), _column(c.outputs for c in layers)
    groups, first = _column(c.groups for c in layers), _column(c.reads_image for c in layers) > 0
    odd = (inputs % ALIGNED_CHANNELS != 0) | (outputs % ALIGNED_CHANNELS != 0)
    return _Convolutions(
        inputs=inputs, outputs=outputs, groups=groups, taps=_column(c.taps for c in layers),
        flop=_column(c.flop for c in layers),
        elements=_column(
            (c.pixels * c.outputs + c.input_pixels * c.inputs * c.groups) * c.count for c in layers
        ),
        products=np.where(first, 2.0, 3.0), dense=groups == 1,
        depthwise=_column(c.depthwise for c in layers) > 0, odd=odd & (groups == 1) & ~first,
        winograd=_column(c.groups == 1 and c.taps == WINOGRAD_TAPS and c.stride == 1 for c in layers) > 0,
    )  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageWork:
    """Seconds of one micro-batch, forward and backward, `[layout]` or `[draw]`."""

    products: Value
    """Convolutions, linear layers and products of activations."""
    attention: Value
    memory: Value
    """Depthwise convolutions, layout conversions, and all operations that are not products."""
    kernels: float
    """Number of kernels launched, without those of the optimizer (`update_kernels`)."""

    @property
    def total(self) -> Value:
        """Total time on the GPU."""
        return self.products + self.attention + self.memory


def _roof(arithmetic: Value, traffic: Value) -> Value:
    return np.asarray((np.asarray(arithmetic) ** ROOF + np.asarray(traffic) ** ROOF) ** (1.0 / ROOF))


def _summed(seconds: Value) -> Value:
    """Sum over the shapes of a network."""
    return np.asarray(np.asarray(seconds).sum(axis=0))


def _half_full(width: Value, half_width: Value) -> Value:
    """Share of the best rate that a width reaches; one half at `half_width`."""
    return width / (width + half_width)


def _wide_rate(recipe: Recipe, rates: Rates) -> Value:
    """Rate of large products in the type that convolutions run in; only linear layers use narrow types."""
    return rates.other_flop_per_s if recipe.policy.narrow else rates.linear_flop_per_s


def _dense_rate(c: _Convolutions, recipe: Recipe, rates: Rates) -> Value:
    """Rate of convolutions without groups, `[shape, 1, 1]` or `[shape, 1, draw]`.

    It exceeds the rate of the multiplications executed where Winograd saves some. Allowing TF32 only adds algorithms,
    so no convolution becomes slower.
    """
    compute, wide = recipe.policy.linear_compute, _wide_rate(recipe, rates) * rates.image_conv_ratio
    saved = np.where(c.winograd, rates.image_winograd_ratio, 1.0)
    if compute == "fp32":
        wide = wide * saved
    if compute == "tf32":
        wide = np.maximum(wide, rates.image_fp32_flop_per_s * saved)
    width = _half_full(c.inputs, rates.image_conv_width) * _half_full(c.outputs, rates.image_conv_width)
    rate = wide * width * np.where(c.taps > 1, rates.image_spatial_ratio, 1.0)
    if recipe.policy.activation_bytes < 4:
        rate = rate * np.where(c.odd, rates.image_misaligned_ratio, 1.0)
    return np.asarray(rate)


def _convolution_s(network: ImageNetwork, images: Value, recipe: Recipe, rates: Rates) -> tuple[Value, Value]:
    """Seconds of convolutions that run as products, and of depthwise convolutions and layout conversions."""
    if not network.convolutions:
        return 0.0, 0.0
    c, each = _convolutions(network.convolutions), recipe.policy.activation_bytes
    rate, wide = _dense_rate(c, recipe, rates), _wide_rate(recipe, rates)
    if recipe.policy.linear_compute == "tf32":
        wide = np.maximum(wide, rates.image_fp32_flop_per_s)
    grouped = wide * rates.image_grouped_ratio * _half_full(c.inputs, rates.image_grouped_width)
    grouped = grouped * np.minimum(c.groups / GROUPS_AT_BEST, 1.0) ** rates.image_groups_power
    moved = c.elements * images * each
    arithmetic = c.products * c.flop * images / np.where(c.dense, rate, grouped)
    as_product = _roof(arithmetic, c.products * moved / rates.operand_bytes_per_s)
    passes = rates.image_depthwise_passes + rates.image_depthwise_tap_passes * c.taps
    as_passes = _summed(moved * np.where(c.depthwise, passes, 0.0)) / rates.memory_bytes_per_s
    if not recipe.channels_last and recipe.policy.linear_compute != "fp32":
        changes = np.where(c.dense, rates.image_layout_passes, rates.image_grouped_layout_passes)
        changed = _summed(moved * np.where(c.depthwise, 0.0, changes))
        as_passes = as_passes + _roof(changed / rates.memory_bytes_per_s, changed / rates.image_layout_bytes_per_s)
    return _summed(np.where(c.depthwise, 0.0, as_product)), as_passes


def _linear_s(network: ImageNetwork, images: Value, recipe: Recipe, rates: Rates) -> Value:
    """Seconds of the linear layers and of products of activations, forward and backward."""
    seconds: Value = 0.0
    each = recipe.policy.activation_bytes
    if network.products:
        n, k = _column(p.n for p in network.products), _column(p.k for p in network.products)
        count = _column(p.count for p in network.products)
        rows = _column(p.m for p in network.products) * count * images
        rate = rates.linear_flop_per_s * rates.image_linear_ratio
        rate = rate * _half_full(n, rates.image_linear_width) * _half_full(k, rates.image_linear_width)
        operands = 3.0 * rows * (n + k) * each / rates.operand_bytes_per_s
        casts = cast_s(MatMul(m=rows / count, n=n, k=k, mean_count=count), recipe, rates)
        seconds = seconds + _summed(_roof(3.0 * 2.0 * rows * n * k / rate, operands) + casts)
    if network.batched:
        flop = _column(b.flop for b in network.batched) * images
        moved = _column(b.count * b.batch * (b.m * b.n + b.m * b.k + b.n * b.k) for b in network.batched) * images
        rate = rates.other_flop_per_s * rates.image_batched_ratio
        seconds = seconds + _summed(_roof(3.0 * flop / rate, 3.0 * moved * each / rates.operand_bytes_per_s))
    return seconds


def _attention_s(network: ImageNetwork, images: Value, recipe: Recipe, rates: Rates) -> tuple[Value, Value]:
    """Seconds of attention, and of the passes over stored scores without a fused kernel."""
    flop = sum(core.flop for core in network.attention)
    if recipe.attention == "flash":
        return images * flop * (1.0 + FLASH_BACKWARD) / rates.attention_flop_per_s, 0.0
    scores = sum(core.heads * core.queries * core.keys * core.count for core in network.attention)
    stored = images * scores * recipe.policy.activation_bytes * rates.image_score_passes
    return (
        images * 3.0 * flop / (rates.other_flop_per_s * rates.image_batched_ratio),
        stored / rates.memory_bytes_per_s,
    )


def _passes_s(traffic: Traffic, images: Value, rates: Rates) -> Value:
    """Seconds of all memory-bound operations that are not products."""
    moved = (
        traffic.batch_norm * rates.image_batch_norm_passes
        + traffic.layer_norm * rates.image_layer_norm_passes
        + traffic.pointwise * rates.image_pointwise_passes
        + traffic.copy * rates.image_copy_passes
        + traffic.reduce * rates.image_reduce_passes
        + traffic.pool * rates.image_pool_passes
    )
    return (images * moved + traffic.weights) / rates.memory_bytes_per_s


def image_work(network: ImageNetwork, images: Value, recipe: Recipe, rates: Rates) -> ImageWork:
    """Time of the operations of one micro-batch, forward and backward.

    Args:
        network: the vision model.
        images: images of one micro-batch, `[layout]`, or `[layout, 1]` to combine each layout with every draw.
        recipe: gives the precision, the channel order and the kind of attention.
        rates: mid values or draws, `[draw]`.
    """
    traffic, each = recipe_traffic(network, recipe), np.reshape(images, (-1, 1))
    convolutions, passes = _convolution_s(network, each, recipe, rates)
    attention, scores = _attention_s(network, each, recipe, rates)
    products = convolutions + _linear_s(network, each, recipe, rates)
    memory = passes + scores + _passes_s(traffic, each, rates) + traffic.kernels * rates.kernel_s
    flat = np.asarray if np.ndim(images) == 2 else np.ravel
    return ImageWork(products=flat(products), attention=flat(attention), memory=flat(memory), kernels=traffic.kernels)


def update_kernels(network: ImageNetwork) -> float:
    """Number of optimizer kernels per step."""
    return UPDATE_KERNELS * network.tensors


def recipe_traffic(network: ImageNetwork, recipe: Recipe) -> Traffic:
    """Memory traffic of a network's operations with the activation type of a recipe."""
    return network.traffic(recipe.policy.activation_bytes)
