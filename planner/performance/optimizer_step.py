"""Time of the optimizer step and of offloading, which are bound by memory traffic rather than arithmetic."""

from __future__ import annotations

import numpy as np

from planner.hardware.cluster import Cluster
from planner.models.shape import ModelShape
from planner.parallelism.layout import Layouts
from planner.performance.activations import stored_bytes_per_layer
from planner.performance.model_states import updated_params, weight_bytes, weights_on_host
from planner.performance.operations import Work
from planner.performance.shards import Shards
from planner.rates.terms import Rates, Value
from planner.training.optimizer import Optimizer
from planner.training.precision import PrecisionPolicy
from planner.training.recipe import Recipe

OFFLOAD_OVERLAP = 0.8
"""Share of the compute that can hide transfers of activations, gradients and weights to and from the host; assumed."""

ADDED_IN_PLACE = 3.0
"""Passes over memory when a gradient is added to an accumulated one: two reads and one write."""


def smaller_dimension(model: ModelShape) -> float:
    """Smaller dimension of a typical weight matrix: the hidden size, or an expert's inner size where it is smaller."""
    return float(min(model.hidden, model.expert_ffn) if model.experts else model.hidden)


def update_bytes_per_param(recipe: Recipe) -> float:
    """Memory traffic of one update in bytes per parameter, with the passes over the gradients before and after it."""
    return gradient_passes_bytes(recipe.policy) + stepped_bytes(recipe.policy, recipe.optimizer)


def gradient_passes_bytes(policy: PrecisionPolicy) -> float:
    """Bytes per parameter of the gradient's norm, its clearing and, with loss scaling, unscaling and overflow check."""
    return (4.0 if policy.loss_scaling else 2.0) * policy.gradient_bytes


def stepped_bytes(policy: PrecisionPolicy, optimizer: Optimizer) -> float:
    """Bytes per parameter that the optimizer itself moves.

    It reads the gradient, reads and writes master weights and moments, and writes the copy in the compute type.
    """
    weights = 2.0 * policy.master_bytes if policy.master_bytes else 2.0 * policy.weight_bytes
    states = 2.0 * (optimizer.full_moments * policy.moment_bytes + optimizer.fixed_state_bytes)
    copy = policy.weight_bytes if policy.master_bytes else 0.0
    return policy.gradient_bytes + weights + states + copy


def optimizer_s(recipe: Recipe, shards: Shards, at: Layouts, rates: Rates) -> Value:
    """Seconds of the update and the step's fixed host time, `[layout]` or `[draw]`.

    Muon's Newton-Schulz steps cost 30 FLOP per parameter times the smaller dimension of the matrix (K. Jordan et al.
    2024). Relative to training's 6 FLOP per parameter and token, that is at most `5 hidden / batch tokens`.
    """
    params = updated_params(shards, at)
    traffic = params * update_bytes_per_param(recipe) / rates.optimizer_bytes_per_s
    flop = params * recipe.optimizer.extra_flop_per_param * smaller_dimension(recipe.model)
    arithmetic = flop / rates.other_flop_per_s
    on_gpu = 0.0 if recipe.offload == "optimizer" else traffic
    return on_gpu + arithmetic + rates.step_overhead_s


def paging_s(
    recipe: Recipe, shards: Shards, at: Layouts, memory_bytes: Value, room_bytes: float, rates: Rates
) -> Value:
    """Time to fetch paged optimizer states that do not fit on the GPU, and to send them back, `[layout]`.

    Args:
        recipe: the model and how it is trained.
        shards: parameters of a GPU.
        at: the layouts.
        memory_bytes: peak without the paged states.
        room_bytes: memory of the GPU that a process can use.
        rates: mid values or draws.
    """
    return 2.0 * paged_out_bytes(recipe, shards, at, memory_bytes, room_bytes) / rates.pcie_bytes_per_s


def paged_out_bytes(recipe: Recipe, shards: Shards, at: Layouts, memory_bytes: Value, room_bytes: float) -> Value:
    """Bytes of a GPU's paged optimizer states that are in host memory, `[layout]`; for the arguments see `paging_s`."""
    states = updated_params(shards, at) * recipe.optimizer.fixed_state_bytes
    outside: Value = np.clip(states + memory_bytes - room_bytes, 0.0, states)
    return outside


def offload_s(
    recipe: Recipe, cluster: Cluster, shards: Shards, at: Layouts, work: Work, busy_s: Value, layers: Value,
    rates: Rates,
) -> Value:  # fmt: skip
    """Seconds of exposed transfers over PCIe and of the update on the host, `[layout]` or `[draw]`."""
    if recipe.offload == "none":
        return np.zeros(at.tp.shape)
    if recipe.offload == "optimizer":
        host = host_bytes_per_s(cluster, at, rates)
        behind_s, exposed_s = _states_moved_s(recipe, shards, at, host, rates)
        update_s = updated_params(shards, at) * update_bytes_per_param(recipe) / host
        return np.maximum(behind_s - OFFLOAD_OVERLAP * busy_s, 0.0) + exposed_s + update_s
    kept, _ = stored_bytes_per_layer(recipe, work, at, rates)
    round_trip_bytes = 2.0 * kept * recipe.backward_share * layers * at.grad_accum
    return np.maximum(round_trip_bytes / rates.pcie_bytes_per_s - OFFLOAD_OVERLAP * busy_s, 0.0)


def host_bytes_per_s(cluster: Cluster, at: Layouts, rates: Rates) -> Value:
    """Host memory bandwidth available to the update of one GPU's process, `[layout]` or `[draw]`.

    The processes of a node share its bandwidth; a single process cannot saturate it.
    """
    sharing = np.minimum(at.gpus, cluster.gpus_per_node)
    result: Value = np.minimum(rates.host_memory_bytes_per_s / sharing, rates.host_process_bytes_per_s)
    return result


def _states_moved_s(recipe: Recipe, shards: Shards, at: Layouts, host: Value, rates: Rates) -> tuple[Value, Value]:
    """Seconds of a step's transfers with offloaded states: those that compute may hide, and those that it waits for.

    Below ZeRO-2, gradients are accumulated on the GPU and sent to the host once. From ZeRO-2 on, the gradients of each
    micro-batch are sent as soon as they are reduced. DeepSpeed adds them to the sum on the GPU, so the sum is fetched
    and sent back behind the backward pass. FSDP adds them in host memory, and the thread that launches kernels waits
    for the copy and the addition (PyTorch's `foreach_reduce`: a copy overlaps only where nothing is accumulated). The
    updated weights are sent to the GPU once or, where FSDP keeps them on the host, for both gathers of every
    micro-batch.
    """
    policy, m = recipe.policy, at.grad_accum.astype(np.float64)
    params, on_host, streams = updated_params(shards, at), weights_on_host(recipe, at), at.zero >= 2
    gradient_s = params * policy.gradient_bytes / rates.pcie_bytes_per_s
    weight_s = params * (policy.weight_bytes or policy.master_bytes) / rates.pcie_bytes_per_s
    added_s = (m - 1.0) * (gradient_s + ADDED_IN_PLACE * params * policy.gradient_bytes / host)
    hidden, waited = ((2.0 * m - 1.0) * gradient_s, 0.0) if recipe.stack == "classic" else (gradient_s, added_s)
    gathers = (1.0 + recipe.backward_share) * m
    gathers_s = gathers * weight_bytes(recipe, shards, at) / rates.pcie_bytes_per_s
    behind = np.where(streams, hidden, 0.0) + np.where(on_host, gathers_s, 0.0)
    exposed = np.where(streams, waited, gradient_s) + np.where(on_host, 0.0, weight_s)
    return behind, exposed
