"""Convolutional networks: time and memory of one training step from a table of convolutions.

A convolution is an implicit matrix product: `m = batch x output pixels`, `n = output channels`, `k = input channels x
kernel area` (cuDNN, Chetlur et al., arXiv 1410.0759). Batch norm, ReLU and residual additions are passes over the
activations: what a convolutional network mostly does on a tensor-core GPU.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cache

import numpy as np

from planner.cluster import Cluster
from planner.collectives import all_reduce_s, place
from planner.layout import Layouts
from planner.memory import MemoryItems
from planner.model import ModelShape
from planner.optimizer_step import update_bytes_per_param
from planner.parameters import parameter
from planner.rates import Rates, Value
from planner.recipe import Recipe
from planner.step import StepTimes, expected_max

BACKWARD_BUCKETS = 20.0
"""Gradient buckets: the last one is reduced after the backward pass."""

KERNELS_PER_CONVOLUTION = 12.0
"""Convolution, norm and ReLU: three forward, nine backward with both gradients, layout changes and accumulation."""


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
        return sum(one.params for one in self.convolutions) + (self.features + 1) * self.classes

    @property
    def flop_per_image(self) -> float:
        """Forward FLOP of one image."""
        return sum(one.flop for one in self.convolutions) + 2.0 * self.features * self.classes

    @property
    def elements_per_image(self) -> float:
        """Output elements of all convolutions of one image."""
        return sum(one.elements for one in self.convolutions)


_BLOCKS = {50: (3, 4, 6, 3), 101: (3, 4, 23, 3), 152: (3, 8, 36, 3)}
"""Bottleneck blocks per stage (He et al., arXiv 1512.03385, table 1)."""


@cache
def resnet(depth: int, image: int = 224) -> Network:
    """ResNet v1.5 with bottleneck blocks: the stride lies in the 3x3 convolution (NVIDIA DeepLearningExamples).

    Raises:
        KeyError: no such depth.
    """
    side = image // 2
    found = [Convolution(inputs=3, outputs=64, kernel=7, pixels=side**2, input_pixels=image**2)]
    side //= 2
    channels = 64
    for stage, blocks in enumerate(_BLOCKS[depth]):
        middle, out = 64 * 2**stage, 256 * 2**stage
        for block in range(blocks):
            before = side**2
            if block == 0 and stage > 0:
                side //= 2
            after = side**2
            found.append(Convolution(inputs=channels, outputs=middle, kernel=1, pixels=before, input_pixels=before))
            found.append(Convolution(inputs=middle, outputs=middle, kernel=3, pixels=after, input_pixels=before))
            if block == 0:
                found.append(
                    Convolution(inputs=channels, outputs=out, kernel=1, pixels=after, input_pixels=before, relu=False)
                )
            found.append(
                Convolution(inputs=middle, outputs=out, kernel=1, pixels=after, input_pixels=after, residual=True)
            )
            channels = out
    return Network(name=f"resnet-{depth}", convolutions=tuple(found), features=channels, classes=1000)


def find_network(name: str) -> Network | None:
    """The network that a name starts with (`ResNet-50 v1.5`, `resnet50`), or None."""
    compact = "".join(c for c in name.lower() if c.isalnum())
    depth = next((depth for depth in _BLOCKS if compact.startswith(f"resnet{depth}")), None)
    return None if depth is None else resnet(depth)


def network_of(shape: ModelShape) -> Network:
    """The network that a shape made by `shape_of_network` stands for.

    Raises:
        ValueError: no network has its name (a mistake of ours).
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


def _forward_s(one: Convolution, images: Value, recipe: Recipe, rates: Rates) -> Value:
    """Seconds of one convolution forward; each of the two backward products has the same FLOP and operands."""
    each = recipe.policy.activation_bytes
    efficiency = parameter("conv_efficiency", recipe.policy.linear_compute).value
    traffic = images * (one.input_pixels * one.inputs + one.elements) * each + one.params * each
    return images * one.flop / (rates.linear_flop_per_s * efficiency) + traffic / rates.operand_bytes_per_s


def _passed_elements(one: Convolution, recipe: Recipe) -> float:
    """Elements read and written for one image by norm, ReLU, addition and changes of layout, forward and backward."""
    how = "fused" if recipe.channels_last else "plain"
    passes = parameter("batch_norm_passes", how).value
    passes += parameter("relu_passes", how).value if one.relu else 0.0
    passes += parameter("residual_passes", how).value if one.residual else 0.0
    moved = 0.0
    if not recipe.channels_last and recipe.policy.activation_bytes < 4:  # kernels for 32-bit types read channels first
        moved = parameter("layout_passes").value * (one.elements + one.input_pixels * one.inputs)
    return passes * one.elements + moved


def network_step(network: Network, recipe: Recipe, cluster: Cluster, at: Layouts, rates: Rates) -> StepTimes:
    """Itemised step of data parallel training, `[layout]` or `[draw]`; `micro_batch` counts images."""
    images = at.micro_batch.astype(np.float64)
    each, kernels = recipe.policy.activation_bytes, KERNELS_PER_CONVOLUTION * len(network.convolutions)
    matmul: Value = 0.0
    passed: Value = 0.0
    for number, one in enumerate(network.convolutions):
        products = 2.0 if number == 0 else 3.0  # images need no gradient
        matmul = matmul + products * _forward_s(one, images, recipe, rates)
        passed = passed + _passed_elements(one, recipe)
    memory = images * passed * each / rates.memory_bytes_per_s + kernels * rates.kernel_s
    busy = matmul + memory
    launch = np.maximum(0.0, kernels * rates.launch_s - busy)
    group = place(at.dp, 1, cluster.nvlink_domain)
    reduce_s = all_reduce_s(network.params * recipe.policy.reduce_bytes, group, rates)
    hidden = rates.overlap_dp * busy * 2.0 / 3.0
    exposed = np.where(at.dp > 1, np.maximum(reduce_s - hidden, reduce_s / BACKWARD_BUCKETS), 0.0)
    optimizer = network.params * update_bytes_per_param(recipe) / rates.optimizer_bytes_per_s + rates.step_overhead_s
    m = at.grad_accum.astype(np.float64)
    jitter = rates.jitter * expected_max(at.gpus.astype(np.float64)) * m * busy
    error, nothing = rates.model_error * rates.precision_error, 0.0 * busy
    return StepTimes(
        matmul=m * matmul * error, attention=nothing, memory_bound=m * memory * error, recompute=nothing,
        launch=m * launch * error, tp_comm=nothing, cp_comm=nothing, ep_comm=nothing, pp_comm=nothing, bubble=nothing,
        dp_comm=exposed * error, optimizer=optimizer * error, offload=nothing, jitter=jitter * error,
    )  # fmt: skip


def network_memory(network: Network, recipe: Recipe, at: Layouts, rates: Rates) -> MemoryItems:
    """Itemised peak: a convolution keeps its output for the norm, and the ReLU's result as the next input."""
    policy, zero = recipe.policy, np.zeros(len(at))
    kept = 1.0 + sum(one.elements for one in network.convolutions if one.relu) / network.elements_per_image
    activations: Value = at.micro_batch.astype(np.float64) * network.elements_per_image * kept * policy.activation_bytes
    low = network.params * policy.low_weight_copy_bytes
    items = MemoryItems(
        weights=zero + network.params * (policy.weight_bytes or policy.master_bytes),
        gradients=zero + network.params * policy.gradient_bytes,
        master_weights=zero + network.params * (policy.master_bytes if policy.weight_bytes else 0.0),
        optimizer_states=zero + network.params * recipe.optimizer.full_moments * policy.moment_bytes,
        activations=activations,
        logits=zero,
        fp8_copies=zero + low,
        gathered_params=zero,
        comm_buffers=np.where(at.dp > 1, rates.nccl_bytes, 0.0),
        framework=zero + rates.context_bytes,
        fragmentation=activations * rates.fragmentation,
    )
    return MemoryItems(**{f.name: getattr(items, f.name) * rates.memory_error for f in fields(MemoryItems)})
