"""Itemised time, memory, energy and cost of many layouts in one pass; every answer is computed here."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import fields, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from planner.hardware.cluster import Cluster
from planner.lazy import dataclass
from planner.models.images.catalogue import network_of
from planner.parallelism.layout import FULL_SHARE, SELECTIVE, Layouts
from planner.performance.images.step import image_memory, image_step
from planner.performance.memory import MemoryItems, memory_items, peak_bytes, usable_bytes
from planner.performance.operations import Work, recomputed_flop_per_token, work_of, worked_flop_per_token
from planner.performance.optimizer_step import paging_s
from planner.performance.products import products_draw_ratio
from planner.performance.run import RunEnergy, goodput_ratio, gpu_step_j, run_energy
from planner.performance.shards import shard_params
from planner.performance.step import StepTimes, allocator_s, error_factor, step_times
from planner.rates.terms import Rates, Value
from planner.training.recipe import Recipe
from planner.units import HOUR_S, KWH_J

Floats = npt.NDArray[np.float64]

CHUNK = 24_576
"""Layouts per pass. Each pass has a fixed cost of some milliseconds, and most searches fit into one pass."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UnitPrices:
    """Factors that turn a run's hours and joules into money and carbon: scalars, or draws `[draw]`."""

    usd_per_gpu_h: Value | None
    usd_per_kwh: Value | None
    """Set only where electricity is paid on top of the GPU price."""
    pue: Value
    kg_co2e_per_kwh: Value


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluation:
    """All figures of a set of layouts: `[layout]`, or under drawn rates `[draw]` (one layout) or `[layout, draw]`."""

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

    def of_row(self, row: int) -> Evaluation:
        """The evaluation of one layout, `[draw]`, from one of a column of layouts, `[layout, draw]`."""
        return Evaluation(**{f.name: _of_row(getattr(self, f.name), row) for f in fields(self)})


def _of_row(value: Any, row: int) -> Any:
    if isinstance(value, MemoryItems):
        return value.of_row(row)
    if isinstance(value, StepTimes | RunEnergy):
        return type(value)(**{f.name: _of_row(getattr(value, f.name), row) for f in fields(value)})
    return value[row] if np.ndim(value) == 2 else value


def step_of(
    recipe: Recipe, cluster: Cluster, at: Layouts, memory_bytes: Value, rates: Rates, work: Work | None = None
) -> StepTimes:
    """Itemised step time of a transformer or a vision model whose layouts need `memory_bytes` at the peak."""
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


def peak_bytes_of(recipe: Recipe, at: Layouts, rates: Rates, work: Work | None = None) -> Value:
    """Total of `memory_of`, in less time."""
    if recipe.model.has_network:
        return image_memory(network_of(recipe.model), recipe, at, rates).total
    return peak_bytes(recipe, at, rates, work)


def draw_ratio_of(recipe: Recipe, at: Layouts, rates: Rates, work: Work | None = None) -> Value:
    """Mean power of the products relative to products at the power limit; convolutions are assumed to run at it."""
    return 1.0 if recipe.model.has_network else products_draw_ratio(recipe, at, rates, work)


def flop_of(recipe: Recipe) -> float:
    """Model FLOP per token (per image for a vision model), forward and backward, that the training method needs."""
    if recipe.model.has_network:
        return 3.0 * network_of(recipe.model).flop_per_image
    return worked_flop_per_token(recipe)


def tokens_per_step(recipe: Recipe, at: Layouts) -> npt.NDArray[np.float64]:
    """Tokens of one optimizer step of each layout, without padding, `[layout]`."""
    return at.global_batch.astype(np.float64) * recipe.mean_len


def recomputed_flop(recipe: Recipe, at: Layouts) -> npt.NDArray[np.float64]:
    """FLOP per token that checkpointing recomputes, `[layout]`; vision models are planned without checkpointing."""
    if recipe.model.has_network:
        return np.zeros(at.tp.shape)
    selective, full_ckpt = (recomputed_flop_per_token(recipe, name) for name in ("selective", "full"))
    return np.where(at.act_ckpt == SELECTIVE, selective, FULL_SHARE[at.act_ckpt] * full_ckpt)


def least_step_s(recipe: Recipe, cluster: Cluster, flop_per_step: Value) -> Value:
    """GPU-seconds of a step at the dense peak: a lower bound for every draw, so that MFU and HFU never exceed 1."""
    return flop_per_step / cluster.gpu.peak_flop_per_s[recipe.policy.linear_compute]


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """Duration of the step and the run of each layout, `[layout]`, or of one layout under draws, `[draw]`."""

    step: StepTimes
    step_s: Value
    goodput_ratio: Value
    busy_s: Value
    wall_s: Value
    gpu_h: Value


def timing(
    recipe: Recipe, cluster: Cluster, at: Layouts, rates: Rates, tokens: float, memory_bytes: Value, work: Work | None
) -> Timing:
    """Time the step and the run of layouts that need `memory_bytes`; for the other arguments see `evaluate`."""
    gpus, step_tokens = at.gpus.astype(np.float64), tokens_per_step(recipe, at)
    least_s = least_step_s(recipe, cluster, step_tokens * (flop_of(recipe) + recomputed_flop(recipe, at))) / gpus
    unbounded = step_of(recipe, cluster, at, memory_bytes, rates, work).centred(rates.centre)
    step, step_s = unbounded.at_least(least_s)
    goodput = goodput_ratio(gpus, rates)
    busy_s = np.ceil(tokens / step_tokens) * step_s * rates.run_error_ratio
    if recipe.lengths_assumed:
        busy_s = busy_s * rates.example_length_ratio
    wall_s = busy_s / goodput
    return Timing(
        step=step, step_s=step_s, goodput_ratio=goodput, busy_s=busy_s, wall_s=wall_s, gpu_h=gpus * wall_s / HOUR_S
    )


def spent(
    recipe: Recipe, cluster: Cluster, at: Layouts, rates: Rates, pue: Value, time: Timing, work: Work | None
) -> tuple[Value, RunEnergy]:
    """Mean board power of a GPU during steps in watts, and the energy of the run; for the arguments see `evaluate`."""
    overhead_s = rates.image_step_overhead_s if recipe.model.has_network else rates.step_overhead_s
    host_s = np.minimum(time.step.optimizer, overhead_s * error_factor(rates))
    step_j = gpu_step_j(time.step, rates, draw_ratio_of(recipe, at, rates, work), host_s)
    power = np.minimum(step_j / time.step_s, cluster.limit_w)
    return power, run_energy(power, at.gpus.astype(np.float64), time.busy_s, time.wall_s, rates, pue)


def paid(prices: UnitPrices, gpu_h: Value, energy: RunEnergy | None) -> Value:
    """USD for GPU hours, plus electricity where it is paid separately."""
    rental = gpu_h * prices.usd_per_gpu_h if prices.usd_per_gpu_h is not None else 0.0 * gpu_h
    if prices.usd_per_kwh is None or energy is None:
        return rental
    return rental + energy.total / KWH_J * prices.usd_per_kwh


def evaluate(
    recipe: Recipe,
    cluster: Cluster,
    at: Layouts,
    rates: Rates,
    prices: UnitPrices,
    tokens: float,
    memory: MemoryItems | None = None,
) -> Evaluation:
    """Evaluate layouts with scalar `rates`, or one layout or a column of layouts with drawn `rates`.

    Args:
        recipe: the model and how it is trained.
        cluster: the machines.
        at: the layouts, `[layout]`; with drawn rates exactly one layout, or a column `[layout, 1]`.
        rates: mid values or draws.
        prices: unit prices, scalars or draws.
        tokens: length of the run.
        memory: the memory of the layouts if already computed.
    """
    work = None if recipe.model.has_network else work_of(recipe, at, rates)  # three parts read it
    memory = memory or memory_of(recipe, at, rates, work if recipe.lengths is None else None)
    memory_bytes = memory.total
    time = timing(recipe, cluster, at, rates, tokens, memory_bytes, work)
    power, energy = spent(recipe, cluster, at, rates, prices.pue, time, work)
    per_gpu = tokens_per_step(recipe, at) / time.step_s / at.gpus.astype(np.float64)
    return Evaluation(
        step=time.step,
        step_s=time.step_s,
        memory=memory,
        memory_bytes=memory_bytes,
        tokens_per_s_per_gpu=per_gpu,
        model_flop_per_s_per_gpu=per_gpu * flop_of(recipe),
        goodput_ratio=time.goodput_ratio,
        busy_s=time.busy_s,
        wall_s=time.wall_s,
        gpu_h=time.gpu_h,
        gpu_power_w=power,
        energy=energy,
        cost_usd=paid(prices, time.gpu_h, energy),
        carbon_kg=energy.total / KWH_J * prices.kg_co2e_per_kwh,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """The figures that a search keeps for every layout, `[layout]` each."""

    step_s: Floats
    wall_s: Floats
    memory_bytes: Floats
    cost_usd: Floats
    energy_j: Floats | None
    """None unless it was requested or the cost depends on it."""

    def take(self, index: npt.NDArray[np.intp]) -> Score:
        """Return the figures of the layouts at an index."""
        energy_j = None if self.energy_j is None else self.energy_j[index]
        return Score(
            step_s=self.step_s[index], wall_s=self.wall_s[index], memory_bytes=self.memory_bytes[index],
            cost_usd=self.cost_usd[index], energy_j=energy_j,
        )  # fmt: skip

    @classmethod
    def joined(cls, parts: Sequence[Score]) -> Score:
        """Concatenate the figures of several sets of layouts; either all of them have the energy or none."""
        energies = [part.energy_j for part in parts if part.energy_j is not None]
        return cls(
            step_s=np.concatenate([part.step_s for part in parts]),
            wall_s=np.concatenate([part.wall_s for part in parts]),
            memory_bytes=np.concatenate([part.memory_bytes for part in parts]),
            cost_usd=np.concatenate([part.cost_usd for part in parts]),
            energy_j=np.concatenate(energies) if energies else None,
        )


def score(
    recipe: Recipe,
    cluster: Cluster,
    at: Layouts,
    rates: Rates,
    prices: UnitPrices,
    tokens: float,
    most_bytes: float = math.inf,
    *,
    energy: bool = False,
) -> Score:
    """Evaluate any number of layouts chunk by chunk and keep the figures that a choice needs.

    Layouts that need more than `most_bytes` of memory have infinite values for all other figures. `energy` says whether
    energy is among the figures. For the other arguments see `evaluate`.
    """
    needs_energy = energy or prices.usd_per_kwh is not None
    layouts, rows = at.by_ckpt_mode, max(CHUNK // at.ckpt_modes, 1)
    chunks = (layouts.take(slice(start, start + rows)) for start in range(0, len(layouts), rows))
    parts = [
        _figures(recipe, cluster, chunk, at.ckpt_modes, rates, prices, tokens, most_bytes, needs_energy)
        for chunk in chunks
    ]
    by_layout = [part.transpose(0, 2, 1).reshape(len(FIGURES), -1) for part in parts]
    figures = dict(zip(FIGURES, np.concatenate([np.zeros((len(FIGURES), 0)), *by_layout], axis=1), strict=True))
    return Score(**figures | ({} if needs_energy else {"energy_j": None}))


FIGURES = tuple(f.name for f in fields(Score))
"""Names of the figures of a score, in order."""


def _figures(
    recipe: Recipe, cluster: Cluster, at: Layouts, ckpt_modes: int, rates: Rates, prices: UnitPrices, tokens: float,
    most_bytes: float, needs_energy: bool,
) -> Floats:  # fmt: skip
    """The figures of layouts in each of `ckpt_modes` checkpointing modes, `[figure, ckpt_mode, layout]`.

    A layout is timed in all checkpointing modes or in none, since they share most of the computation.
    """
    work = None if recipe.model.has_network else work_of(recipe, at, rates)
    figures = np.full((len(FIGURES), ckpt_modes, len(at)), np.inf)
    needed_bytes = figures[FIGURES.index("memory_bytes")]
    needed_bytes[:] = peak_bytes_of(recipe, at, rates, work if recipe.lengths is None else None)
    fits = needed_bytes <= most_bytes
    timed = np.flatnonzero(fits.any(axis=0))
    if not len(timed):
        return figures
    timed_layouts, work = at.take(timed), None if work is None else work.take(timed)
    time = timing(recipe, cluster, timed_layouts, rates, tokens, needed_bytes[:, timed], work)
    joules = spent(recipe, cluster, timed_layouts, rates, prices.pue, time, work)[1] if needs_energy else None
    values = {"step_s": time.step_s, "wall_s": time.wall_s, "cost_usd": paid(prices, time.gpu_h, joules)}
    if joules is not None:
        values["energy_j"] = joules.total
    for name, value in values.items():
        figures[FIGURES.index(name)][:, timed] = np.where(fits[:, timed], value, np.inf)
    return figures
