"""Time of one optimizer step, itemised, for every layout at once.

Items are `[layout]` (or `[draw]` for one layout and drawn rates) and sum to the step time. The critical path is that of
the slowest pipeline stage: its work times the number of micro-batches, plus the bubble and exposed communication.
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
from planner.performance.compute import END_LAUNCHES, HeadTime, LayerTime, head_time, launches_per_layer, layer_time
from planner.performance.operations import Work, work_of
from planner.performance.optimizer_step import offload_s, optimizer_s
from planner.performance.shards import Shards, shard_params
from planner.rates.terms import Rates, Value
from planner.training.recipe import Recipe

ALLOCATOR_FROM = 0.95
"""Memory use, as a share of the GPU's, above which the allocator sometimes finds no free block; assumed."""
ALLOCATOR_RAMP = 0.05
"""Range of memory use, as a share, over which flushes rise from none to one per micro-batch; assumed."""
LAUNCH_NORM = 6.0
"""Order of the norm that combines host and GPU time of a micro-batch: where they are equal, the result is 12 % more."""


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
    """0 until `evaluation.step_of`, which knows the memory use, sets it."""

    @property
    def total(self) -> Value:
        """Step time."""
        result: Value = sum((getattr(self, name) for name in ITEMS), 0.0)
        return result

    @property
    def compute(self) -> Value:
        """Forward, backward and recomputation on the critical path."""
        result: Value = self.matmul + self.attention + self.memory_bound + self.recompute
        return result

    def at_least(self, floor_s: Value) -> tuple[StepTimes, Value]:
        """Scale all items by one factor so that the total is at least the floor; return scaled items and the total."""
        total = self.total
        stretch = np.maximum(1.0, floor_s / total)
        return (self, total) if np.all(stretch == 1.0) else (self._stretched(stretch), total * stretch)

    def centred(self, centre: int | None) -> StepTimes:
        """Scale all draws by one factor so that their median is the step with every input at its mid value.

        The fit makes the prediction at mid values unbiased, but the median of the draws is higher, because the sum of
        widely spread inputs exceeds the sum of their mid values. A run does not take longer because less is known about
        it (docs/decisions/0026-draws-about-the-mid.md).

        Args:
            centre: index of the draw with every input at its mid value; None if these are not draws around mid values.
        """
        if centre is None:
            return self
        total = np.asarray(self.total)
        if total.ndim == 0:
            return self
        middles = np.array([middle(steps_s) for steps_s in np.reshape(total, (-1, total.shape[-1]))])
        return self._stretched((total[..., centre].ravel() / middles).reshape(*total.shape[:-1], 1))

    def _stretched(self, stretch: Value) -> StepTimes:
        return StepTimes(**{name: getattr(self, name) * stretch for name in ITEMS})


ITEMS = tuple(f.name for f in fields(StepTimes))
"""Names of the items of a step, in order."""


def _recompute(layer: LayerTime, recipe: Recipe, at: Layouts) -> Value:
    """Time of forward work that is recomputed in the backward pass of one layer, without its messages.

    Selective checkpointing recomputes different operations in different stacks: with naive attention the attention core
    (Korthikanti et al. 2022), in FSDP stacks every second matrix product (torchtitan's per-operation policy), and in
    Megatron the fused attention kernel, or norms and activations where layers have experts.
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
    """Number of layers on the slowest stage, and whether the output layer is on that stage (1 or 0)."""
    with_head = shards.layers_last * layer + head
    last = np.where(at.pp == 1, True, with_head >= shards.layers_most * layer)
    return np.where(last, shards.layers_last, shards.layers_most), last * 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class StageTime:
    """Seconds of one micro-batch on the slowest pipeline stage, `[layout]` or `[draw]`."""

    layer: LayerTime
    head: HeadTime
    comm: LayerComm
    recompute: Value
    """Recomputation in one layer."""
    per_layer: Value
    """One layer with recomputation and its exposed communication."""
    layers: Value
    """Number of layers on the stage."""
    with_head: Value
    """1 where the output layer is on the stage, else 0."""
    total: Value
    """The whole micro-batch."""


def slowest_stage(recipe: Recipe, cluster: Cluster, work: Work, shards: Shards, at: Layouts, rates: Rates) -> StageTime:
    """Time of a micro-batch on the slowest stage, which is on the critical path of every micro-batch."""
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
    """Itemised step time, `[layout]`, or `[draw]` for one layout; pass `work` if already computed."""
    work = work_of(recipe, at, rates) if work is None else work
    shards = shard_params(recipe, at)
    stage = slowest_stage(recipe, cluster, work, shards, at, rates)
    layer, head, comm, n, with_head = stage.layer, stage.head, stage.comm, stage.layers, stage.with_head
    per_layer, slowest = stage.per_layer, stage.total
    m = at.grad_accum.astype(np.float64)
    every_stage = recipe.model.layers * per_layer + head.total
    host_s = _host_s(recipe, cluster, at, shards.layers_most, rates)
    launch, others_s = waiting_s(host_s, slowest), every_stage - slowest
    bubble = np.where(at.pp > 1, others_s / at.vp, 0.0)
    mean_other_s = np.where(at.pp > 1, others_s / np.maximum(at.pp - 1, 1), slowest)
    bubble_launch = (at.pp - 1) * waiting_s(host_s, mean_other_s) / at.vp
    busy = m * slowest
    dp_comm = data_parallel(recipe, cluster, shards, at, slowest, rates).total_s
    pp_comm = comm.send * (m * at.vp + at.pp - 1)  # one per chunk of a micro-batch, and more while stages fill
    optimizer = optimizer_s(recipe, shards, at, rates)
    offload = offload_s(recipe, cluster, shards, at, work, busy, shards.layers_most, rates)
    jitter = rates.jitter_ratio * expected_max(at.gpus.astype(np.float64)) * (busy + bubble + bubble_launch)
    error = error_factor(rates)
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


def error_factor(rates: Rates) -> Value:
    """Error factor of the step time: effects of a team's software, a precision, a GPU, a model and a single run."""
    shared: Value = rates.stack_error_ratio * rates.precision_error_ratio
    return shared * rates.gpu_error_ratio * rates.shape_error_ratio * rates.model_error_ratio


def allocator_s(cluster: Cluster, at: Layouts, memory_bytes: Value, rates: Rates) -> Value:
    """Time lost when memory is almost full: PyTorch's allocator frees its cached blocks and allocates them again.

    A pipeline that allocates a new buffer for every message between stages, on a separate stream, loses this time in
    every micro-batch once memory is full. Stacks that keep their buffers do not.

    Args:
        cluster: the machines, whose GPU has the memory.
        at: the layouts.
        memory_bytes: predicted peak, `[layout]` or `[draw]`.
        rates: mid values or draws.
    """
    fill_ratio = np.clip((memory_bytes / cluster.gpu.memory_bytes - ALLOCATOR_FROM) / ALLOCATOR_RAMP, 0.0, 1.0)
    flushes = np.where(at.pp > 1, (at.grad_accum + at.pp - 1) * fill_ratio, 0.0)
    return flushes * rates.allocator_retry_s * error_factor(rates)


def _tensor_calls_s(recipe: Recipe, cluster: Cluster, at: Layouts, rates: Rates) -> Value:
    """Host time of the tensor parallel collectives of one layer, forward and backward.

    Sequence parallelism replaces each reduction by a gather and a scatter. In a pipeline across nodes, sends that block
    the host keep the ranks of a group from arriving together, and every collective waits for each rank.
    """
    calls = 8.0 if recipe.sequence_parallel else 4.0
    crosses_nodes = (at.pp > 1) & (at.gpus > cluster.near_gpus)
    waits = np.where(crosses_nodes, at.tp * rates.pipelined_rank_s, 0.0)
    return np.where(at.tp > 1, calls * (rates.collective_launch_s + waits), 0.0)


def _host_s(recipe: Recipe, cluster: Cluster, at: Layouts, layers: Value, rates: Rates) -> Value:
    """Time that the host needs to launch the kernels of one micro-batch on a stage of so many layers."""
    passes = (recipe.forward_passes + 2.0 * recipe.backward_share) / 3.0  # a forward pass launches a third
    passes_with_recompute = passes + recipe.backward_share * FULL_SHARE[at.act_ckpt] / 3.0
    layer_s = launches_per_layer(recipe, rates) * rates.launch_s + _tensor_calls_s(recipe, cluster, at, rates)
    host_s: Value = layers * layer_s * passes_with_recompute + END_LAUNCHES * rates.launch_s
    return host_s


def waiting_s(host_s: Value, gpu_s: Value) -> Value:
    """Time that the GPU waits for the host to launch kernels; small work is launch-bound.

    The longer of host and GPU time dominates, but softly (a norm of order `LAUNCH_NORM`), because parts of a layer wait
    for the host before the whole layer does. The result is that norm, less the GPU's time.
    """
    ratio = np.asarray(host_s) / gpu_s
    waits: Value = gpu_s * ((1.0 + ratio**LAUNCH_NORM) ** (1.0 / LAUNCH_NORM) - 1.0)
    return waits
