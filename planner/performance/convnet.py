"""Time and memory of one training step of a convolutional network.

Convolutions run as implicit matrix products (`models/convnet.py`). Batch norm, ReLU and residual additions are passes
over the activations: what a convolutional network mostly does on a tensor-core GPU.
"""

from __future__ import annotations

import numpy as np

from planner.hardware.cluster import Cluster
from planner.models.convnet import Convolution, Network
from planner.parallelism.layout import Layouts
from planner.parallelism.slowest import expected_max
from planner.performance.collectives import all_reduce_s, place
from planner.performance.memory import MemoryItems, memory_left_out
from planner.performance.model_states import moment_bytes
from planner.performance.optimizer_step import update_bytes_per_param
from planner.performance.step import StepTimes, left_out, waiting_s
from planner.performance.transfers import Transfer
from planner.rates.terms import Rates, Value
from planner.training.recipe import Recipe

BACKWARD_BUCKETS = 20.0
"""Gradient buckets: the last one is reduced after the backward pass."""

KERNELS_PER_CONVOLUTION = 12.0
"""Convolution, norm and ReLU: three forward, nine backward with both gradients, layout changes and accumulation."""


def _forward_s(conv: Convolution, images: Value, recipe: Recipe, rates: Rates) -> Value:
    """Seconds of one convolution forward; each of the two backward products has the same FLOP and operands."""
    each = recipe.policy.activation_bytes
    traffic = images * (conv.input_pixels * conv.inputs + conv.elements) * each + conv.params * each
    return images * conv.flop / (rates.linear_flop_per_s * rates.conv_rate_ratio) + traffic / rates.operand_bytes_per_s


def _passed_elements(conv: Convolution, recipe: Recipe, rates: Rates) -> Value:
    """Elements read and written for one image by norm, ReLU, addition and changes of layout, forward and backward."""
    passes = rates.batch_norm_passes
    passes = passes + (rates.relu_passes if conv.relu else 0.0)
    passes = passes + (rates.residual_passes if conv.residual else 0.0)
    moved: Value = 0.0
    if not recipe.channels_last and recipe.policy.activation_bytes < 4:  # kernels for 32-bit types read channels first
        moved = rates.layout_passes * (conv.elements + conv.input_pixels * conv.inputs)
    return passes * conv.elements + moved


def gradient_transfer(network: Network, recipe: Recipe, cluster: Cluster, at: Layouts, rates: Rates) -> Transfer:
    """The gradients of a step, reduced among all GPUs."""
    group = place(at.dp, 1, cluster.nvlink_domain)
    payload = network.params * recipe.policy.reduce_bytes
    return Transfer(
        operation="all_reduce", carries="gradients", payload_bytes=payload, group=group,
        once_s=all_reduce_s(payload, group, rates), times=1.0,
    )  # fmt: skip


def network_step(network: Network, recipe: Recipe, cluster: Cluster, at: Layouts, rates: Rates) -> StepTimes:
    """Itemised step of data parallel training, `[layout]` or `[draw]`; `micro_batch` counts images."""
    images = at.micro_batch.astype(np.float64)
    each, kernels = recipe.policy.activation_bytes, KERNELS_PER_CONVOLUTION * len(network.convolutions)
    matmul: Value = 0.0
    passed: Value = 0.0
    for number, conv in enumerate(network.convolutions):
        products = 2.0 if number == 0 else 3.0  # images need no gradient
        matmul = matmul + products * _forward_s(conv, images, recipe, rates)
        passed = passed + _passed_elements(conv, recipe, rates)
    memory = images * passed * each / rates.memory_bytes_per_s + kernels * rates.kernel_s
    busy = matmul + memory
    launch = waiting_s(kernels * rates.launch_s, busy)
    reduce_s = gradient_transfer(network, recipe, cluster, at, rates).once_s
    hidden = rates.overlap_dp_ratio * busy * 2.0 / 3.0
    exposed = np.where(at.dp > 1, np.maximum(reduce_s - hidden, reduce_s / BACKWARD_BUCKETS), 0.0)
    optimizer = network.params * update_bytes_per_param(recipe) / rates.optimizer_bytes_per_s + rates.step_overhead_s
    m = at.grad_accum.astype(np.float64)
    jitter = rates.jitter_ratio * expected_max(at.gpus.astype(np.float64)) * m * busy
    error, nothing = left_out(rates), 0.0 * busy
    return StepTimes(
        matmul=m * matmul * error, attention=nothing, memory_bound=m * memory * error, recompute=nothing,
        launch=m * launch * error, tp_comm=nothing, cp_comm=nothing, ep_comm=nothing, pp_comm=nothing, bubble=nothing,
        dp_comm=exposed * error, optimizer=optimizer * error, offload=nothing, jitter=jitter * error, allocator=nothing,
    )  # fmt: skip


def network_memory(network: Network, recipe: Recipe, at: Layouts, rates: Rates) -> MemoryItems:
    """Itemised peak: a convolution keeps its output for the norm, and the ReLU's result as the next input."""
    policy, zero = recipe.policy, np.zeros(len(at))
    kept = 1.0 + sum(conv.elements for conv in network.convolutions if conv.relu) / network.elements_per_image
    activations: Value = at.micro_batch.astype(np.float64) * network.elements_per_image * kept * policy.activation_bytes
    low = network.params * policy.low_weight_copy_bytes
    items = MemoryItems(
        weights=zero + network.params * (policy.weight_bytes or policy.master_bytes),
        gradients=zero + network.params * policy.gradient_bytes,
        master_weights=zero + network.params * (policy.master_bytes if policy.weight_bytes else 0.0),
        optimizer_states=zero + network.params * moment_bytes(recipe),
        activations=activations,
        logits=zero,
        fp8_copies=zero + low,
        gathered_params=zero,
        comm_buffers=np.where(at.dp > 1, rates.nccl_bytes, 0.0),
        framework=zero + rates.context_bytes,
        fragmentation=activations * rates.fragmentation_ratio,
    )
    return items.scaled(memory_left_out(rates))
