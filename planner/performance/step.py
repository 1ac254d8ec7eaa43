"""Time of one optimizer step, itemised, for every layout at once.

Items are `[layout]` (or `[draw]` for one layout and drawn rates) and sum to the step. The critical path is the slowest
pipeline stage: its work times the number of micro-batches, plus the bubble, plus what is exposed of each communication.
"""

from __future__ import annotations

from dataclasses import fields

import numpy as np

from planner.evidence import middle
from planner.hardware.cluster import Cluster
from planner.lazy import dataclass
from planner.parallelism.layout import FULL_SHARE, SELECTIVE, Layouts
from planner.parallelism.slowest import expected_max
from planner.performance.communication import LayerComm, data_parallel, layer_comm
from planner.performance.compute import END_LAUNCHES, HeadTime, LayerTime, head_time, kernels, layer_time
from planner.performance.operations import Work, work_of
from planner.performance.optimizer_step import offload_s, optimizer_s
from planner.performance.shards import Shards, shard_params
from planner.rates.terms import Rates, Value
from planner.training.recipe import Recipe

ALLOCATOR_FROM = 0.95
"""Share of the memory from which the allocator finds no free block now and then: assumed."""
ALLOCATOR_RAMP = 0.05
"""Share of the memory over which it goes from no flush to one in every micro-batch: assumed."""
LAUNCH_NORM = 6.0
"""Order of the norm that joins the host's and the GPU's time of a micro-batch: 12 % above both where they are equal."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StepTimes:
    """Seconds per step by item (`plan.STEP_ITEMS`), on the critical path."""

    matmul: Value
    attention: Value
    memory_bound: Value
    recompute: Value
    launch: Value
    tp_comm: Value
    cp_comm: Value
    ep_comm: Value
    pp_comm: Value
    bubble: Value
    dp_comm: Value
    optimizer: Value
    offload: Value
    jitter: Value
    allocator: Value
    """0 until `evaluation.step_of` sets it, which knows the memory."""

    @property
    def total(self) -> Value:
        """The step."""
        result: Value = sum((getattr(self, name) for name in ITEMS), 0.0)
        return result

    @property
    def compute(self) -> Value:
        """Forward, backward and recomputation on the critical path."""
        result: Value = self.matmul + self.attention + self.memory_bound + self.recompute
        return result

    def at_least(self, floor_s: Value) -> tuple[StepTimes, Value]:
        """The same with every item stretched alike where the total would lie below the floor, and the total."""
        total = self.total
        stretch = np.maximum(1.0, floor_s / total)
        return (self, total) if np.all(stretch == 1.0) else (self._stretched(stretch), total * stretch)

    def centred(self, centre: int | None) -> StepTimes:
        """The same draws, all stretched alike so that their middle is the step at mid.

        The fit makes the prediction at mid unbiased, but the median of the draws lies above it: so does the sum of
        widely drawn inputs above the sum of their mids. A run does not take longer because less is known of it
        (docs/decisions/0026-draws-about-the-mid.md).

        Args:
            centre: which draw has every input at its mid; None: these are no draws about a mid.
        """
        total = np.asarray(self.total)
        if centre is None or total.ndim == 0:
            return self
        middles = np.array([middle(steps_s) for steps_s in np.reshape(total, (-1, total.shape[-1]))])
        return self._stretched((total[..., centre].ravel() / middles).reshape(*total.shape[:-1], 1))

    def _stretched(self, stretch: Value) -> StepTimes:
        return StepTimes(**{name: getattr(self, name) * stretch for name in ITEMS})


ITEMS = tuple(f.name for f in fields(StepTimes))
"""Names of the items of a step, in their order."""


def _recompute(layer: LayerTime, recipe: Recipe, at: Layouts) -> Value:
    """Forward work done again in the backward pass of one layer, without its messages.

    What selective checkpointing recomputes depends on the stack: with naive attention its core (Korthikanti et al.
    2022); in FSDP stacks every second matrix product (torchtitan's per-operation policy); in Megatron with fused
    attention that kernel, or norms and activations where layers have experts.
    """
    if recipe.attention == "naive":
        selective = layer.attention_forward + layer.scores_forward
    elif recipe.fused:
        selective = layer.attention_forward if recipe.reruns_attention else 0.5 * layer.memory_forward
    else:
        selective = 0.5 * layer.matmul_forward + layer.memory_forward
    return recipe.backward_share * np.where(
        at.act_ckpt == SELECTIVE, selective, FULL_SHARE[at.act_ckpt] * layer.forward
    )


def _stages(shards: Shards, layer: Value, head: Value, at: Layouts) -> tuple[Value, Value]:
    """Layers on the slowest stage, and whether the output layer is on it (1 or 0)."""
    with_head = shards.layers_last * layer + head
    last = np.where(at.pp == 1, True, with_head >= shards.layers_most * layer)
    return np.where(last, shards.layers_last, shards.layers_most), last * 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class StageTime:
    """One micro-batch on the slowest pipeline stage, `[layout]` or `[draw]`."""

    layer: LayerTime
    head: HeadTime
    comm: LayerComm
    recompute: Value
    """Of one layer."""
    per_layer: Value
    """One layer with its exposed communication."""
    layers: Value
    """Layers of the stage."""
    with_head: Value
    """1 where the output layer is on the stage, else 0."""
    total: Value
    """The micro-batch."""


def slowest_stage(recipe: Recipe, cluster: Cluster, work: Work, shards: Shards, at: Layouts, rates: Rates) -> StageTime:
    """What the critical path passes for every micro-batch."""
    by_split = layer_time(recipe, work, rates)
    comm = layer_comm(recipe, cluster, work, at, by_split, rates)
    layer, head = by_split.by_layout(work.splits), head_time(recipe, work, rates).by_layout(work.splits)
    recompute = _recompute(layer, recipe, at)
    per_layer = layer.total + recompute + comm.total
    layers, with_head = _stages(shards, per_layer, head.total, at)
    return StageTime(
        layer=layer, head=head, comm=comm, recompute=recompute, per_layer=per_layer, layers=layers,
        with_head=with_head, total=layers * per_layer + with_head * head.total,
    )  # fmt: skip


def step_times(recipe: Recipe, cluster: Cluster, at: Layouts, rates: Rates, work: Work | None = None) -> StepTimes:
    """Itemised step time, `[layout]`, or `[draw]` for one layout; `work` where it is known already."""
    work = work_of(recipe, at, rates) if work is None else work
    shards = shard_params(recipe, at)
    stage = slowest_stage(recipe, cluster, work, shards, at, rates)
    layer, head, comm, n, with_head = stage.layer, stage.head, stage.comm, stage.layers, stage.with_head
    per_layer, slowest = stage.per_layer, stage.total
    m = at.grad_accum.astype(np.float64)
    every_stage = recipe.model.layers * per_layer + head.total
    launch = _launch(recipe, cluster, at, shards.layers_most, slowest, rates)
    bubble = np.where(at.pp > 1, (every_stage - slowest) / at.vp, 0.0)
    bubble_launch = (at.pp - 1) * launch / at.vp
    busy = m * slowest
    dp_comm = data_parallel(recipe, cluster, shards, at, slowest, rates).total_s
    pp_comm = comm.send * (m * at.vp + at.pp - 1)  # one for each chunk of a micro-batch, and while the stages fill
    optimizer = optimizer_s(recipe, shards, at, rates)
    offload = offload_s(recipe, cluster, shards, at, work, busy, shards.layers_most, rates)
    jitter = rates.jitter_ratio * expected_max(at.gpus.astype(np.float64)) * (busy + bubble + bubble_launch)
    error = left_out(rates)
    work_error = error * rates.framework_ratio
    return StepTimes(
        matmul=m * (n * layer.matmul + with_head * head.matmul) * work_error,
        attention=m * n * layer.attention * work_error,
        memory_bound=m * (n * layer.memory + with_head * head.memory) * work_error,
        recompute=m * n * stage.recompute * work_error,
        launch=m * launch * error,
        tp_comm=m * n * comm.tp * error,
        cp_comm=m * n * comm.cp * error,
        ep_comm=m * n * comm.ep * error,
        pp_comm=pp_comm * error,
        bubble=bubble * work_error + bubble_launch * error,
        dp_comm=dp_comm * error,
        optimizer=optimizer * error,
        offload=offload * error,
        jitter=jitter * error,
        allocator=0.0 * busy,
    )


def left_out(rates: Rates) -> Value:
    """What the equations leave out of the step: of one team's software, one precision, GPU and model, and one run."""
    shared: Value = rates.stack_error_ratio * rates.precision_error_ratio
    return shared * rates.gpu_error_ratio * rates.shape_error_ratio * rates.model_error_ratio


def allocator_s(cluster: Cluster, at: Layouts, memory_bytes: Value, rates: Rates) -> Value:
    """Time that a full memory costs: PyTorch's allocator frees its cached blocks and allocates them again.

    A pipeline that allocates a new buffer for every message between its stages, on a stream of its own, pays this in
    every micro-batch once memory is full. Stacks that keep their buffers do not.

    Args:
        cluster: whose GPU has the memory.
        at: the layouts.
        memory_bytes: predicted peak, `[layout]` or `[draw]`.
        rates: mid values or draws.
    """
    full = np.clip((memory_bytes / cluster.gpu.memory_bytes - ALLOCATOR_FROM) / ALLOCATOR_RAMP, 0.0, 1.0)
    flushes = np.where(at.pp > 1, (at.grad_accum + at.pp - 1) * full, 0.0)
    return flushes * rates.allocator_retry_s * left_out(rates)


def _tensor_calls_s(recipe: Recipe, cluster: Cluster, at: Layouts, rates: Rates) -> Value:
    """Host time of the tensor parallel collectives of one layer, forward and backward.

    With sequence parallelism a gather and a scatter for each reduction. Between stages on different nodes, sends that
    block the host keep the ranks of a group from arriving together: a collective waits for each of them.
    """
    calls = 8.0 if recipe.sequence_parallel else 4.0
    apart = (at.pp > 1) & (at.gpus > cluster.near_gpus)
    waits = np.where(apart, at.tp * rates.pipelined_rank_s, 0.0)
    return np.where(at.tp > 1, calls * (rates.collective_launch_s + waits), 0.0)


def _launch(recipe: Recipe, cluster: Cluster, at: Layouts, layers: Value, gpu_s: Value, rates: Rates) -> Value:
    """Time of one micro-batch that the GPU waits for the host to launch kernels: small work is launch-bound.

    The longer of the two decides, softly (a norm of order `LAUNCH_NORM`): parts of a layer wait for the host before the
    whole of it does.
    """
    passes = (recipe.forward_passes + 2.0 * recipe.backward_share) / 3.0  # a forward pass launches a third
    again = passes + recipe.backward_share * FULL_SHARE[at.act_ckpt] / 3.0
    layer_s = kernels(recipe, rates) * rates.launch_s + _tensor_calls_s(recipe, cluster, at, rates)
    return waiting_s(layers * layer_s * again + END_LAUNCHES * rates.launch_s, gpu_s)


def waiting_s(host_s: Value, gpu_s: Value) -> Value:
    """Time that the GPU waits for the host: what the norm of order `LAUNCH_NORM` of both has beyond the GPU's own."""
    ratio = np.asarray(host_s) / gpu_s
    waits: Value = gpu_s * ((1.0 + ratio**LAUNCH_NORM) ** (1.0 / LAUNCH_NORM) - 1.0)
    return waits
