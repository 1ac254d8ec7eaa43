"""Findings of a run of several ranks besides the collectives: steps by layout, and the cost of overlap."""

from __future__ import annotations

from collections.abc import Iterable

from planner.lazy import dataclass
from planner.records.measurement import Measurement


@dataclass(frozen=True, slots=True, kw_only=True)
class StepRow:
    """One layout of a training step; figures cover all ranks together, and the time is that of the slowest rank."""

    parallel: str
    """See `planner.records.work.RunSetup.parallel`."""
    precision: str
    recipe: str
    recompute: str
    model: str
    ranks: int
    time_s: float
    tokens_per_s: float
    predicted_s: float | None
    """Predicted from ranks alone, the collectives and the overlap; None for ranks alone."""
    composition_ratio: float | None
    """Measured over predicted time: shows what the parts leave out."""
    rank_spread_ratio: float | None
    """Slowest rank over the fastest, minus 1; for ranks alone, this is the cost of stragglers."""
    memory_bytes: float | None
    """Peak of live tensors on the rank that needs most."""
    energy_j: float | None
    """Energy of all GPUs."""
    quality: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class OverlapRow:
    """A product and a collective at the same time."""

    op: str
    group: str
    ranks: int
    bytes: float
    product_slowdown_ratio: float
    collective_slowdown_ratio: float | None
    quality: str | None


def step_rows(points: Iterable[Measurement]) -> tuple[StepRow, ...]:
    """Return the steps over several ranks, in the order of measurement."""
    return tuple(
        _step(point) for point in points if point.kind == "parallel_step" and point.usable_time and point.shape.tokens
    )


def overlap_rows(points: Iterable[Measurement]) -> tuple[OverlapRow, ...]:
    """Return the products beside collectives, in the order of measurement."""
    return tuple(
        OverlapRow(
            op=point.communication.op or "",
            group=point.communication.group or "",
            ranks=point.communication.world or 0,
            bytes=point.communication.bytes or 0.0,
            product_slowdown_ratio=point.overlap.product_slowdown_ratio,
            collective_slowdown_ratio=point.overlap.collective_slowdown_ratio,
            quality=point.sampling.quality,
        )
        for point in points
        if point.kind == "overlap" and point.status == "ok" and point.overlap.product_slowdown_ratio is not None
    )


def waiting_power_w(points: Iterable[Measurement]) -> float | None:
    """Return the mean power of the ranks that waited for a late one; None if it was not measured."""
    for point in points:
        waiting = point.ranks.power_w[1:] if point.kind == "waiting" else ()
        if waiting:
            return sum(waiting) / len(waiting)
    return None


def _step(point: Measurement) -> StepRow:
    time_s, predicted_s = point.time.median_s or 0.0, point.predicted.time_s
    ranks = point.ranks.time_s
    return StepRow(
        parallel=point.setup.parallel or "",
        precision=point.setup.precision or "",
        recipe=point.setup.recipe or "",
        recompute=point.setup.recompute or "none",
        model=f"{point.shape.model}, {point.shape.layers} layers, {point.shape.seq_len} tokens",
        ranks=point.communication.world or 0,
        time_s=time_s,
        tokens_per_s=(point.shape.tokens or 0) / time_s,
        predicted_s=predicted_s,
        composition_ratio=time_s / predicted_s if predicted_s else None,
        rank_spread_ratio=max(ranks) / min(ranks) - 1.0 if ranks else None,
        memory_bytes=point.memory.allocated_peak_bytes,
        energy_j=point.energy.j_per_iteration,
        quality=point.sampling.quality,
    )
