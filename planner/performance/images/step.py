"""Time and memory of one data-parallel training step of a vision model, with a whole copy on each GPU."""

from __future__ import annotations

import numpy as np

from planner.hardware.cluster import Cluster
from planner.models.image_network import ImageNetwork
from planner.parallelism.layout import Layouts
from planner.parallelism.slowest import expected_max
from planner.performance.collectives import all_reduce_s, place_on
from planner.performance.compression import coding_s, residual_bytes, sent_bytes
from planner.performance.images.work import image_work, recipe_traffic, update_kernels
from planner.performance.memory import MemoryItems, memory_error_factor
from planner.performance.model_states import moment_bytes
from planner.performance.optimizer_step import update_bytes_per_param
from planner.performance.step import StepTimes, error_factor, waiting_s
from planner.performance.transfers import Transfer
from planner.rates.terms import Rates, Value
from planner.training.recipe import Recipe

BACKWARD_BUCKETS = 20.0
"""Number of gradient buckets; the last one is reduced after the backward pass."""
BACKWARD_SHARE = 2.0 / 3.0
"""Share of a step's work that computes gradients and can hide their reduction."""


def image_gradients(network: ImageNetwork, recipe: Recipe, cluster: Cluster, at: Layouts, rates: Rates) -> Transfer:
    """The all-reduce of a step's gradients among all GPUs."""
    group = place_on(cluster, at.dp)
    payload = network.params * sent_bytes(recipe, at, network)
    messages = 1.0 if recipe.grad_compression is None else recipe.grad_compression.messages
    return Transfer(
        operation="all_reduce", carries="gradients", payload_bytes=payload, group=group,
        once_s=all_reduce_s(payload, group, rates, messages), times=1.0, messages=messages,
    )  # fmt: skip


def image_coding_s(network: ImageNetwork, recipe: Recipe, at: Layouts, rates: Rates) -> Value:
    """Time to code and decode compressed gradients; 0 on a single rank."""
    return np.where(at.dp > 1, coding_s(recipe, network.params, rates), 0.0)


def image_step(network: ImageNetwork, recipe: Recipe, cluster: Cluster, at: Layouts, rates: Rates) -> StepTimes:
    """Itemised step time of data-parallel training, `[layout]` or `[draw]`; `micro_batch` counts images."""
    work = image_work(network, at.micro_batch.astype(np.float64), recipe, rates)
    m, updates = at.grad_accum.astype(np.float64), update_kernels(network)
    update_s = updates * rates.kernel_s
    last_micro_batch_s = work.total + update_s  # the micro-batch after which the weights are updated
    launch = (m - 1.0) * waiting_s(work.kernels * rates.launch_s, work.total)
    launch = launch + waiting_s((work.kernels + updates) * rates.launch_s, last_micro_batch_s)
    reduce_s = image_gradients(network, recipe, cluster, at, rates).once_s
    hidden = rates.overlap_dp_ratio * last_micro_batch_s * BACKWARD_SHARE
    exposed = np.where(at.dp > 1, np.maximum(reduce_s - hidden, reduce_s / BACKWARD_BUCKETS), 0.0)
    coding = image_coding_s(network, recipe, at, rates)
    update_bytes = network.params * update_bytes_per_param(recipe)
    optimizer = update_bytes / rates.optimizer_bytes_per_s + rates.image_step_overhead_s
    jitter = rates.jitter_ratio * expected_max(at.gpus.astype(np.float64)) * (m * work.total + update_s)
    error, zero = error_factor(rates), 0.0 * last_micro_batch_s
    return StepTimes(
        matmul=m * work.products * error, attention=m * work.attention * error,
        memory_bound=(m * work.memory + update_s) * error, recompute=zero, launch=launch * error,
        tp_comm=zero, cp_comm=zero, ep_comm=zero, pp_comm=zero, bubble=zero,
        dp_comm=(exposed + coding) * error, optimizer=optimizer * error, offload=zero, jitter=jitter * error,
        allocator=zero,
    )  # fmt: skip


def image_memory(network: ImageNetwork, recipe: Recipe, at: Layouts, rates: Rates) -> MemoryItems:
    """Itemised peak memory: model states and all tensors that the operations keep for the backward pass."""
    policy, zero = recipe.policy, np.zeros(at.tp.shape)
    images: Value = at.micro_batch.astype(np.float64)
    activations = images * recipe_traffic(network, recipe).saved * rates.image_activation_ratio
    items = MemoryItems(
        weights=zero + network.params * (policy.weight_bytes or policy.master_bytes),
        gradients=zero + network.params * policy.gradient_bytes + residual_bytes(recipe, network.params, at),
        master_weights=zero + network.params * (policy.master_bytes if policy.weight_bytes else 0.0),
        optimizer_states=zero + network.params * moment_bytes(recipe),
        activations=activations,
        logits=zero,
        fp8_copies=zero + network.params * policy.low_weight_copy_bytes,
        gathered_params=zero,
        comm_buffers=np.where(at.dp > 1, rates.nccl_bytes, 0.0),
        framework=zero + rates.context_bytes,
        fragmentation=activations * rates.fragmentation_ratio,
    )
    return items.scaled(memory_error_factor(rates))
