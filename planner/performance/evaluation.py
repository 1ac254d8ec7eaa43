"""One pass over many layouts: time, memory, energy and cost, itemised: the single arithmetic of every answer."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from planner.hardware.cluster import Cluster
from planner.lazy import dataclass
from planner.models.images.catalogue import network_of
from planner.parallelism.layout import FULL_SHARE, SELECTIVE, Layouts
from planner.performance.images.step import image_memory, image_step
from planner.performance.memory import MemoryItems, memory_items, usable_bytes
from planner.performance.operations import Work, recomputed_flop_per_token, work_of, worked_flop_per_token
from planner.performance.optimizer_step import paging_s
from planner.performance.products import products_draw_ratio
from planner.performance.run import RunEnergy, goodput_ratio, gpu_step_j, run_energy
from planner.performance.shards import shard_params
from planner.performance.step import StepTimes, allocator_s, step_times
from planner.rates.terms import Rates, Value
from planner.training.recipe import Recipe
from planner.units import HOUR_S, KWH_J

Floats = npt.NDArray[np.float64]

CHUNK = 24_576
"""Layouts per pass: a pass takes some milliseconds whatever its size, so that most searches take one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UnitPrices:
    """What is multiplied in: scalars, or draws `[draw]`."""

    usd_per_gpu_h: Value | None
    usd_per_kwh: Value | None
    """Only where electricity is paid on top of the GPU price."""
    pue: Value
    kg_co2e_per_kwh: Value


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluation:
    """Everything about a set of layouts, `[layout]`, or about one layout under drawn rates, `[draw]`."""

    step: StepTimes
    step_s: Value
    memory: MemoryItems
    memory_bytes: Value
    tokens_per_s_per_gpu: Value
    model_flop_per_s_per_gpu: Value
    goodput_ratio: Value
    busy_s: Value
    """Time spent in steps."""
    wall_s: Value
    gpu_h: Value
    gpu_power_w: Value
    """Mean board power during steps."""
    energy: RunEnergy
    cost_usd: Value
    """GPU rental, and electricity where it is paid separately; 0 where no price is known."""
    carbon_kg: Value


def step_of(
    recipe: Recipe, cluster: Cluster, at: Layouts, memory_bytes: Value, rates: Rates, work: Work | None = None
) -> StepTimes:
    """Itemised step of a transformer, or of a vision model, that needs so much memory."""
    if recipe.model.has_network:
        return image_step(network_of(recipe.model), recipe, cluster, at, rates)
    step = step_times(recipe, cluster, at, rates, work)
    step = replace(step, allocator=allocator_s(cluster, at, memory_bytes, rates))
    if not recipe.optimizer.paged:
        return step
    paging = paging_s(recipe, shard_params(recipe, at), at, memory_bytes, usable_bytes(cluster.gpu), rates)
    return replace(step, offload=step.offload + paging)


def memory_of(recipe: Recipe, at: Layouts, rates: Rates, work: Work | None = None) -> MemoryItems:
    """Itemised peak memory of a transformer or of a vision model."""
    if recipe.model.has_network:
        return image_memory(network_of(recipe.model), recipe, at, rates)
    return memory_items(recipe, at, rates, work)


def draw_ratio_of(recipe: Recipe, at: Layouts, rates: Rates, work: Work | None = None) -> Value:
    """Mean power of the products over that of products which hold the limit; convolutions are taken to hold it."""
    return 1.0 if recipe.model.has_network else products_draw_ratio(recipe, at, rates, work)


def flop_of(recipe: Recipe) -> float:
    """Model FLOP per token (per image of a vision model), forward and backward, of what the method trains."""
    if recipe.model.has_network:
        return 3.0 * network_of(recipe.model).flop_per_image
    return worked_flop_per_token(recipe)


def tokens_per_step(recipe: Recipe, at: Layouts) -> npt.NDArray[np.float64]:
    """Tokens of one optimizer step of each layout, without padding, `[layout]`."""
    return at.global_batch.astype(np.float64) * recipe.mean_len


def recomputed_flop(recipe: Recipe, at: Layouts) -> npt.NDArray[np.float64]:
    """FLOP per token that checkpointing does again, `[layout]`; vision models are planned without."""
    if recipe.model.has_network:
        return np.zeros(at.tp.shape)
    selective, full = (recomputed_flop_per_token(recipe, name) for name in ("selective", "full"))
    return np.where(at.act_ckpt == SELECTIVE, selective, FULL_SHARE[at.act_ckpt] * full)


def least_step_s(recipe: Recipe, cluster: Cluster, flop_per_step: Value) -> Value:
    """GPU-seconds of a step at the dense peak, below which no draw can go: neither MFU nor HFU is above 1."""
    return flop_per_step / cluster.gpu.peak_flop_per_s[recipe.policy.linear_compute]


def evaluate(
    recipe: Recipe,
    cluster: Cluster,
    at: Layouts,
    rates: Rates,
    prices: UnitPrices,
    tokens: float,
    memory: MemoryItems | None = None,
    work: Work | None = None,
) -> Evaluation:
    """Evaluate layouts (`rates` scalar) or one layout under draws (`rates` drawn).

    Args:
        recipe: what is trained.
        cluster: on which machines.
        at: the layouts, `[layout]`; with drawn rates exactly one.
        rates: mid values or draws.
        prices: unit prices, scalars or draws.
        tokens: length of the run.
        memory: what the layouts need, where it is known already.
        work: of the layouts, where it is known already.
    """
    flop, gpus = flop_of(recipe), at.gpus.astype(np.float64)
    if work is None and not recipe.model.has_network:
        work = work_of(recipe, at, rates)  # three parts read it
    memory = memory or memory_of(recipe, at, rates, work if recipe.lengths is None else None)
    memory_bytes = memory.total
    step_tokens = tokens_per_step(recipe, at)
    least_s = least_step_s(recipe, cluster, step_tokens * (flop + recomputed_flop(recipe, at))) / gpus
    drawn = step_of(recipe, cluster, at, memory_bytes, rates, work).centred(rates.centre)
    step, step_s = drawn.at_least(least_s)
    per_gpu = step_tokens / step_s / gpus
    goodput = goodput_ratio(gpus, rates)
    busy_s = np.ceil(tokens / step_tokens) * step_s * rates.run_error_ratio
    if recipe.lengths_assumed:
        busy_s = busy_s * rates.example_length_ratio
    wall_s = busy_s / goodput
    gpu_h = gpus * wall_s / HOUR_S
    power = np.minimum(gpu_step_j(step, rates, draw_ratio_of(recipe, at, rates, work)) / step_s, cluster.limit_w)
    energy = run_energy(power, gpus, busy_s, wall_s, rates, prices.pue)
    facility_kwh = energy.total / KWH_J
    rental = gpu_h * prices.usd_per_gpu_h if prices.usd_per_gpu_h is not None else 0.0 * gpu_h
    electricity = facility_kwh * prices.usd_per_kwh if prices.usd_per_kwh is not None else 0.0
    return Evaluation(
        step=step,
        step_s=step_s,
        memory=memory,
        memory_bytes=memory_bytes,
        tokens_per_s_per_gpu=per_gpu,
        model_flop_per_s_per_gpu=per_gpu * flop,
        goodput_ratio=goodput,
        busy_s=busy_s,
        wall_s=wall_s,
        gpu_h=gpu_h,
        gpu_power_w=power,
        energy=energy,
        cost_usd=rental + electricity,
        carbon_kg=facility_kwh * prices.kg_co2e_per_kwh,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """What a search keeps of every layout, `[layout]` each."""

    step_s: npt.NDArray[np.float64]
    wall_s: npt.NDArray[np.float64]
    memory_bytes: npt.NDArray[np.float64]
    cost_usd: npt.NDArray[np.float64]
    energy_j: npt.NDArray[np.float64]


def score(
    recipe: Recipe,
    cluster: Cluster,
    at: Layouts,
    rates: Rates,
    prices: UnitPrices,
    tokens: float,
    most_bytes: float = math.inf,
) -> Score:
    """Evaluate any number of layouts chunk by chunk and keep the five figures that a choice needs.

    Layouts that need more than `most_bytes` are not timed: their other figures are infinite. Further arguments as of
    `evaluate`.
    """
    parts: list[Evaluation] = []
    needed: list[Value] = []
    for start in range(0, len(at), CHUNK):
        chunk = at.take(slice(start, start + CHUNK))
        has_work = not recipe.model.has_network and recipe.lengths is None
        work = work_of(recipe, chunk, rates) if has_work else None
        memory = memory_of(recipe, chunk, rates, work)
        needed.append(memory.total)
        timed = np.flatnonzero(needed[-1] <= most_bytes)
        if len(timed) == len(chunk):
            parts.append(evaluate(recipe, cluster, chunk, rates, prices, tokens, memory, work))
        elif len(timed):
            work = None if work is None else work.taken(timed)
            parts.append(evaluate(recipe, cluster, chunk.take(timed), rates, prices, tokens, memory.taken(timed), work))
    memory_bytes = _joined(needed)
    timed = np.flatnonzero(memory_bytes <= most_bytes)

    def of_all(values: Iterable[Value]) -> Floats:
        spread = np.full(len(at), np.inf)
        spread[timed] = _joined(values)
        return spread

    return Score(
        step_s=of_all(p.step_s for p in parts),
        wall_s=of_all(p.wall_s for p in parts),
        memory_bytes=memory_bytes,
        cost_usd=of_all(p.cost_usd for p in parts),
        energy_j=of_all(p.energy.total for p in parts),
    )


def _joined(values: Iterable[Value]) -> Floats:
    return np.concatenate([np.zeros(0), *(np.asarray(value, dtype=np.float64) for value in values)])
