"""Peak memory of one GPU, itemised, for every layout at once: the larger of the first and the last pipeline stage.

A stage holds its states and the activations of its micro-batches in flight. The peak occurs either at the loss, with
its logits, or in the backward pass of one layer, with that layer's working memory and gathered parameters, whichever
needs more. Gradients that are not accumulated grow as activations are freed.
"""

from __future__ import annotations

import math
from dataclasses import fields, replace
from operator import attrgetter

import numpy as np
import numpy.typing as npt

from planner.evidence import Estimate
from planner.hardware.gpu import Gpu
from planner.lazy import dataclass
from planner.parallelism.layout import Layouts
from planner.performance.activations import in_flight, stored_bytes_per_layer, working_bytes
from planner.performance.compression import residual_bytes
from planner.performance.model_states import (
    TemporaryCopies,
    copies_at_work,
    gradient_copies,
    kept_copies,
    states,
    step_gradients,
    sums_wider,
    temporary_copies,
)
from planner.performance.operations import Work, work_of
from planner.performance.shards import Shards, shard_params, trained_share
from planner.rates.qualifiers import stored_loss
from planner.rates.terms import Rates, Value
from planner.training.recipe import Recipe
from planner.units import GIB

DRIVER_RESERVED_BYTES = 0.55 * GIB
"""Memory that no process can use: an H100 of 81,559 MiB (`nvidia-smi`) offers 79.1 GiB (`torch.cuda.mem_get_info`)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryItems:
    """Bytes at the peak by item (`plan.MEMORY_ITEMS`), `[layout]` or `[draw]`."""

    weights: Value
    gradients: Value
    master_weights: Value
    optimizer_states: Value
    activations: Value
    logits: Value
    fp8_copies: Value
    gathered_params: Value
    comm_buffers: Value
    framework: Value
    fragmentation: Value

    @property
    def total(self) -> Value:
        """Memory that the driver reports as used."""
        first, *others = _values_of(self)
        result: Value = sum(others, first)
        return result

    @property
    def allocated(self) -> Value:
        """Memory that the allocator hands out at the peak: without context, communicators and fragmentation."""
        return self.total - self.framework - self.comm_buffers - self.fragmentation

    @property
    def reserved(self) -> Value:
        """Memory that the allocator holds: with fragmentation, without context and communicators."""
        return self.allocated + self.fragmentation

    def take(self, index: npt.NDArray[np.intp]) -> MemoryItems:
        """The items of the layouts at an index."""
        values = {name: getattr(self, name) for name in ITEMS}
        return MemoryItems(**{name: value[index] if np.ndim(value) else value for name, value in values.items()})

    def of_row(self, row: int) -> MemoryItems:
        """The items of one layout, `[draw]`, from items of a column of layouts, `[layout, draw]`."""
        values = {name: getattr(self, name) for name in ITEMS}
        return MemoryItems(**{name: value[row] if np.ndim(value) == 2 else value for name, value in values.items()})

    def scaled(self, ratio: Value) -> MemoryItems:
        """Multiply every item by a ratio."""
        if isinstance(ratio, float) and ratio == 1.0:  # at mid values the error factors are 1
            return self
        return MemoryItems(**{name: getattr(self, name) * ratio for name in ITEMS})


ITEMS = tuple(f.name for f in fields(MemoryItems))
"""Names of the memory items, in order."""
_values_of = attrgetter(*ITEMS)


def _alive(gradients: Value, activations: Value, recipe: Recipe, at: Layouts) -> Value:
    """Bytes of gradients that exist at the peak, in addition to the activations.

    PyTorch allocates gradients during the backward pass, while activations are freed, so with one micro-batch per step
    the peak holds the larger of the two. Accumulated gradients, and buffers for their sums, always exist.
    """
    if recipe.fused or sums_wider(recipe.policy):
        return gradients
    return np.where(at.grad_accum == 1, np.maximum(gradients - activations, 0.0), gradients)


@dataclass(frozen=True, slots=True, kw_only=True)
class _SharedByStages:
    """Quantities that every pipeline stage shares, in bytes, `[layout]` or `[draw]`."""

    kept: Value
    """Activations that a layer keeps of one micro-batch for its backward pass."""
    logits: Value
    """Logits on the stage with the output layer."""
    logit_gradients: Value
    """What is left of them while the output layer is run backward: their gradient in the type of activations."""
    working: Value
    """Working memory that exists once, while one layer is run backward."""
    copies_at_work: Value
    """Casts of the weights of the layer being run."""
    temporary_copies: TemporaryCopies
    comm_buffers: Value
    framework: Value


def _shared_by_stages(recipe: Recipe, at: Layouts, work: Work, shards: Shards, rates: Rates) -> _SharedByStages:
    kept, uncheckpointed = stored_bytes_per_layer(recipe, work, at, rates)
    axes = (at.tp > 1) * 1.0 + (at.pp > 1) * 1.0 + (at.cp > 1) * 1.0 + (at.ep > 1) * 1.0 + (at.dp > 1) * 1.0
    return _SharedByStages(
        kept=kept * recipe.backward_share, logits=_logit_bytes(recipe, work, rates),
        logit_gradients=_logit_elements(recipe, work) * recipe.policy.activation_bytes,
        working=working_bytes(recipe, work, at, kept, uncheckpointed),
        copies_at_work=copies_at_work(recipe, shards, at),
        temporary_copies=temporary_copies(recipe, shards, at), comm_buffers=axes * rates.nccl_bytes,
        framework=rates.context_bytes + np.zeros(at.tp.shape),
    )  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class _Stage:
    """Bytes of one pipeline stage without the error factor, `[layout]` or `[draw]`."""

    values: tuple[Value, ...]
    """The values of `ITEMS`, in order."""
    total: Value

    @property
    def items(self) -> MemoryItems:
        """The values by item."""
        return MemoryItems(**dict(zip(ITEMS, self.values, strict=True)))


def _stage(recipe: Recipe, at: Layouts, common: _SharedByStages, shards: Shards, rates: Rates, *, last: bool) -> _Stage:
    held, gathered = states(recipe, shards, at, last=last), common.temporary_copies
    layers = shards.layers_last if last else shards.layers_most
    stored = common.kept * (2.0 if recipe.offload == "activations" else layers * in_flight(at, last=last))
    logits = common.logits if last else np.where(at.pp == 1, common.logits, 0.0)
    logit_gradients = np.minimum(logits, common.logit_gradients)
    at_head = logit_gradients + gathered.of_head > logits + gathered.at_loss
    logits, of_ends = np.where(at_head, logit_gradients, logits), np.where(at_head, gathered.of_head, gathered.at_loss)
    at_loss = logits + of_ends > common.working + gathered.in_layer + common.copies_at_work
    activations = stored + np.where(at_loss, 0.0, common.working)
    logits = np.where(at_loss, logits, 0.0)
    gradients = _alive(held.gradients, activations + logits, recipe, at)
    at_step = step_gradients(recipe, shards, at, last=last)
    gradients = gradients + np.maximum(at_step - activations - logits, 0.0)  # at the update no activations are left
    params = shards.trained(last)
    values = (
        held.weights,
        gradients + gradient_copies(recipe, shards, at, last=last) + residual_bytes(recipe, params, at),
        held.master_weights,
        held.optimizer_states,
        activations,
        logits,
        kept_copies(recipe, shards, at, last=last) + np.where(at_loss, 0.0, common.copies_at_work),
        gathered.held + np.where(at_loss, of_ends, gathered.in_layer),
        common.comm_buffers,
        common.framework,
    )
    unfragmented: Value = sum(values[1:], values[0])
    # Frozen weights occupy blocks that are never freed, so they do not fragment memory.
    frozen: Value = held.weights * (1.0 if recipe.how.adapts else 1.0 - trained_share(recipe))
    allocated = unfragmented - common.framework - common.comm_buffers
    fragmentation = (allocated - frozen) * rates.fragmentation_ratio
    return _Stage(values=(*values, fragmentation), total=unfragmented + fragmentation)


def _with_error(recipe: Recipe, stage: _Stage, rates: Rates) -> MemoryItems:
    """The items of a stage with the error factor of the memory equations."""
    items = stage.items
    scaled = items.scaled(memory_error_factor(rates))
    if not recipe.how.fine_tunes:
        return scaled
    return replace(scaled, weights=items.weights + 0.0 * scaled.weights)  # exact: weights are read from a file


def _total_with_error(recipe: Recipe, stage: _Stage, rates: Rates) -> Value:
    """Total of `_with_error`, without the items where the factor applies to all of them."""
    if recipe.how.fine_tunes:
        return _with_error(recipe, stage, rates).total
    total: Value = stage.total * memory_error_factor(rates)
    return total


def _logit_bytes(recipe: Recipe, work: Work, rates: Rates) -> Value:
    """Bytes of the logits and the loss's buffers on the stage with the output layer.

    A loss computes in FP32. If the logits already are, it needs no copy of them and its gradient no cast, so that it
    holds as many bytes as with logits in 16 bits: 4 + 4 + 4 for 2 + 4 + 4 + 2 (Llama 3.2 1B, record of an H200 of
    2026-11-27: 12.2 bytes per logit in FP32, 12.1 in BF16). A compiled or chunked loss holds few logits in FP32 or none
    unless they are.

    A loss that is fused with the output layer holds the logits of a chunk of tokens at a time, about as many elements
    as the hidden state has (Liger-Kernel, `fused_linear_cross_entropy.py`: chunks of tokens times hidden over
    vocabulary).
    """
    copies_to_fp32 = stored_loss(recipe) not in ("fsdp-compile", "fused")
    wider = 0.0 if copies_to_fp32 else recipe.policy.activation_bytes - 2.0
    return _logit_elements(recipe, work) * (rates.logit_stored_bytes + wider)


def _logit_elements(recipe: Recipe, work: Work) -> Value:
    """Logits that exist at once, `[layout]`: a chunk of them where the loss is fused with the output layer."""
    chunks = max(1, math.ceil(recipe.model.vocab / recipe.model.hidden)) if recipe.fused_head else 1
    return work.splits.spread(work.logit_elements / chunks)


def memory_error_factor(rates: Rates) -> Value:
    """Error factor of the memory equations: effects of a team's software, a GPU architecture, a model and a run."""
    shared: Value = rates.memory_stack_error_ratio * rates.memory_architecture_error_ratio
    return shared * rates.memory_shape_error_ratio * rates.memory_error_ratio


def memory_items(recipe: Recipe, at: Layouts, rates: Rates, work: Work | None = None) -> MemoryItems:
    """Itemised peak of the fuller of first and last pipeline stage, `[layout]` or `[draw]`; pass `work` if computed."""
    first, *others = (_with_error(recipe, stage, rates) for stage in _ends(recipe, at, rates, work))
    if not others:
        return first
    (last,) = others
    fuller = np.asarray(last.total) > np.asarray(first.total)
    return MemoryItems(**{name: np.where(fuller, getattr(last, name), getattr(first, name)) for name in ITEMS})


def peak_bytes(recipe: Recipe, at: Layouts, rates: Rates, work: Work | None = None) -> Value:
    """Total of `memory_items`, for the many layouts of which nobody sees the items."""
    first, *others = (_total_with_error(recipe, stage, rates) for stage in _ends(recipe, at, rates, work))
    return np.maximum(first, others[0]) if others else first


def _ends(recipe: Recipe, at: Layouts, rates: Rates, work: Work | None) -> tuple[_Stage, ...]:
    """The first and the last pipeline stage; only one where no layout has more."""
    work = work_of(recipe.longest, at, rates) if work is None else work
    shards = shard_params(recipe, at)
    common = _shared_by_stages(recipe, at, work, shards, rates)
    ends = (False,) if (at.pp == 1).all() else (False, True)
    return tuple(_stage(recipe, at, common, shards, rates, last=last) for last in ends)


def usable_bytes(gpu: Gpu) -> float:
    """Memory of a GPU that a process can use; the driver reserves none on a CPU."""
    return gpu.memory_bytes - (0.0 if gpu.arch == "CPU" else DRIVER_RESERVED_BYTES)


def shortfall_gib(needed_gib: float, capacity_gib: float) -> float:
    """Missing GiB: the difference of the figures as printed (one decimal), or the exact one if that is not positive."""
    printed = round(needed_gib, 1) - round(capacity_gib, 1)
    return printed if printed > 0.0 else needed_gib - capacity_gib


def fits_probability(total_bytes: Value, gpu: Gpu) -> float:
    """Probability, 0..1, that a peak fits into a GPU's usable memory.

    Args:
        total_bytes: draws of the peak as the driver reports it, `[draw]`; a single value gives 0 or 1.
        gpu: the GPU.
    """
    return float(np.mean(np.asarray(total_bytes) <= usable_bytes(gpu)))


def memory_risk(total_bytes: Value, gpu: Gpu) -> float:
    """Probability, 0..1, of running out of memory; for the arguments see `fits_probability`."""
    return 1.0 - fits_probability(total_bytes, gpu)


def memory_risks(total_bytes: npt.NDArray[np.float64], gpu: Gpu) -> npt.NDArray[np.float64]:
    """Probability of running out of memory for each layout, `[layout]`, from drawn peaks, `[layout, draw]`."""
    return np.asarray(1.0 - np.mean(total_bytes <= usable_bytes(gpu), axis=1))


def memory_range_gib(total_bytes: Value) -> Estimate:
    """Range of a drawn peak, `[draw]`, in GiB, around the last draw, which has every input at its mid value.

    The items that a plan shows sum to this mid estimate, and the fit makes it unbiased.
    """
    gib = np.ravel(np.asarray(total_bytes, dtype=np.float64)) / GIB
    return Estimate.of_draws(gib, mid=float(gib[-1]))
