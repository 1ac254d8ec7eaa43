"""Time of the optimizer step and of offloading: memory traffic, not arithmetic."""

from __future__ import annotations

import numpy as np

from planner.models.shape import ModelShape
from planner.parallelism.layout import Layouts
from planner.performance.activations import stored_bytes_per_layer
from planner.performance.model_states import updated_params
from planner.performance.operations import Work
from planner.performance.shards import Shards
from planner.rates.terms import Rates, Value
from planner.training.recipe import Recipe

OFFLOAD_OVERLAP = 0.8
"""Share of the compute behind which activations move to the host and back: assumed."""

HOST_ADAM_BYTES_PER_S = 25e9
"""Host memory bandwidth that one GPU's share of a CPU optimizer gets: assumed, a twelfth of a two-socket server's."""


def smaller_dimension(model: ModelShape) -> float:
    """Smaller side of a typical weight matrix: the hidden size, or an expert's inner size where that is smaller."""
    return float(min(model.hidden, model.expert_ffn) if model.experts else model.hidden)


def update_bytes_per_param(recipe: Recipe) -> float:
    """Memory traffic of one update: gradient norm and clipping, read-modify-write of master weights and moments."""
    policy, optimizer = recipe.policy, recipe.optimizer
    weights = 2.0 * policy.master_bytes if policy.master_bytes else 2.0 * policy.weight_bytes
    states = 2.0 * (optimizer.full_moments * policy.moment_bytes + optimizer.fixed_state_bytes)
    scaling = 2.0 * policy.gradient_bytes if policy.loss_scaling else 0.0  # unscale and overflow check
    copy = policy.weight_bytes if policy.master_bytes else 0.0
    return 3.0 * policy.gradient_bytes + weights + states + scaling + copy


def optimizer_s(recipe: Recipe, shards: Shards, at: Layouts, rates: Rates) -> Value:
    """Seconds of the update and the step's fixed host time, `[layout]` or `[draw]`.

    Muon's Newton-Schulz steps cost 30 FLOP per parameter times the smaller side of the matrix (K. Jordan et al.
    2024): over the 6 of each token at most `5 hidden / batch tokens`.
    """
    params = updated_params(recipe, shards, at)
    traffic = params * update_bytes_per_param(recipe) / rates.optimizer_bytes_per_s
    flop = params * recipe.optimizer.extra_flop_per_param * smaller_dimension(recipe.model)
    arithmetic = flop / rates.other_flop_per_s
    on_gpu = 0.0 if recipe.offload == "optimizer" else traffic
    return on_gpu + arithmetic + rates.step_overhead_s


def paging_s(
    recipe: Recipe, shards: Shards, at: Layouts, memory_bytes: Value, room_bytes: float, rates: Rates
) -> Value:
    """Time to fetch paged optimizer states that find no room on the GPU, and to send them back, `[layout]`.

    Args:
        recipe: what is trained.
        shards: parameters of a GPU.
        at: the layouts.
        memory_bytes: peak without the paged states.
        room_bytes: what a process gets of the GPU's memory.
        rates: mid values or draws.
    """
    states = updated_params(recipe, shards, at) * recipe.optimizer.fixed_state_bytes
    outside = np.clip(states + memory_bytes - room_bytes, 0.0, states)
    return 2.0 * outside / rates.pcie_bytes_per_s


def offload_s(
    recipe: Recipe, shards: Shards, at: Layouts, work: Work, busy_s: Value, layers: Value, rates: Rates
) -> Value:
    """Exposed transfers over PCIe and the host's update."""
    if recipe.offload == "none":
        return np.zeros(len(at))
    policy = recipe.policy
    if recipe.offload == "optimizer":
        params = updated_params(recipe, shards, at)
        moved = params * (policy.gradient_bytes + (policy.weight_bytes or policy.master_bytes))
        return moved / rates.pcie_bytes_per_s + params * update_bytes_per_param(recipe) / HOST_ADAM_BYTES_PER_S
    kept, _ = stored_bytes_per_layer(recipe, work, at, rates)
    there_and_back = 2.0 * kept * layers * at.grad_accum
    return np.maximum(there_and_back / rates.pcie_bytes_per_s - OFFLOAD_OVERLAP * busy_s, 0.0)
