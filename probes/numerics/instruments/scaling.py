"""Loss scaling in FP16: every static scale from 2^0 to 2^40, and dynamic scaling as `torch.amp.GradScaler` does it.

A step whose gradients hold an infinity or NaN is not taken: that is the goodput which loss scaling costs
(Micikevicius et al., arXiv 1710.03740; PyTorch's `torch.amp` documentation has the defaults).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from itertools import pairwise
from typing import Any

import torch

from probes.numerics.instruments.time import Keep, OutOfTimeError, Plain, Slice
from probes.numerics.lowering.recipes import LowerRecipe, lower_by_id
from probes.numerics.tasks.interface import Task
from probes.numerics.training import Place, Run, ScaleStep, dynamic_scaler

POWERS = range(41)
STEPS_EACH = 4
"""Of a static scale."""
GIVEN_UP_AFTER = 2
"""Steps at a static scale that all overflow: nothing will change."""
USUAL_INTERVAL = 2000
"""Steps without overflow after which torch's scaler doubles the scale."""
MOST_STEPS = 400
LEAST_STEPS = 20
LEAST_SCALE = 2.0**-149
HIGH_START_LOG2 = 24
USUAL_START_LOG2 = 16
"""Of the run with a short interval, and of torch. The first is above what FP16 holds for most models: it backs off."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StaticScale:
    """Training at one fixed scale."""

    scale_log2: int
    steps: int
    """Steps that were tried."""
    skipped: int
    """Of them, those that were lost to an overflow."""
    loss: float | None
    """Last training loss; None where every step was skipped."""

    @property
    def overflows(self) -> bool:
        """Whether any step did."""
        return self.skipped > 0


@dataclass(frozen=True, slots=True, kw_only=True)
class DynamicScale:
    """Training under dynamic scaling."""

    name: str
    """`usual`: torch's defaults; `short`: a high start and a short interval, so that growth shows in a short run."""
    init_scale_log2: float
    growth_interval: int
    growth_factor: float
    backoff_factor: float
    steps: int
    skipped: int
    skipped_step_ratio: float
    """Of the steps of this run: the goodput lost to skips."""
    settled_skipped_step_ratio: float | None
    """Of the steps after the first one that was taken: without the search for the first scale. None: none was taken."""
    steady_skipped_step_ratio: float
    """What a long run loses at the growth interval: after each that many steps one doubling too far is taken back."""
    overflow_steps: tuple[int, ...]
    """Numbers of the steps that were skipped."""
    path: tuple[tuple[int, float], ...]
    """Step and log2 of the scale, at the start and wherever it changes."""
    complete: bool


class StaticScaler(torch.amp.GradScaler):  # type: ignore[misc] # torch is untyped here
    """Skips a step as torch's scaler does, and never changes the scale."""

    def __init__(self, kind: str, scale: float) -> None:
        super().__init__(kind, init_scale=scale, growth_interval=2**31 - 1)
        self._fixed = scale

    def update(self, new_scale: Any = None) -> None:
        """Begin the next step at the same scale."""
        super().update(self._fixed)


def next_power(tried: Mapping[int, bool], powers: Sequence[int] = POWERS) -> int | None:
    """The scale to try next: the ends, then where overflow begins, then the middle of the widest gap.

    So the limit is known after a few scales, and the range is covered evenly wherever the time runs out.

    Args:
        tried: whether each scale that was tried overflows.
        powers: all of them, rising and without gaps.

    Returns:
        None where all are tried.
    """
    for end in (powers[0], powers[-1]):
        if end not in tried:
            return end
    gaps = [(low, high) for low, high in pairwise(sorted(tried)) if high - low > 1]
    at_limit = [(low, high) for low, high in gaps if tried[low] != tried[high]]
    if not gaps:
        return None
    low, high = (at_limit or sorted(gaps, key=lambda gap: gap[0] - gap[1]))[0]
    return (low + high) // 2


def static_scale(run: Run, start: Plain, power: int, recipe: LowerRecipe) -> StaticScale:
    """Some steps at one scale, from the same start."""
    run.restore(start)
    run.lower(recipe)
    run.scaler = StaticScaler(run.place.kind, 2.0**power)
    losses: list[float] = []
    skipped = taken = 0
    for number in range(STEPS_EACH):
        loss, step = run.one_step()
        taken += 1
        lost = step is not None and step.skipped
        skipped += lost
        if not lost:
            losses.append(loss)
        if skipped == GIVEN_UP_AFTER == number + 1:
            break
    last = losses[-1] if losses and math.isfinite(losses[-1]) else None
    return StaticScale(scale_log2=power, steps=taken, skipped=skipped, loss=last)


def _static_row(run: Run, start: Plain, power: int, recipe: LowerRecipe) -> Plain:
    return asdict(static_scale(run, start, power, recipe))


def dynamic_scale(run: Run, name: str, steps: int, until: Slice) -> DynamicScale:
    """A run under dynamic scaling, until its steps are taken or the time is up."""
    short = name == "short"
    interval = max(steps // 10, 5) if short else USUAL_INTERVAL
    init = 2.0 ** (HIGH_START_LOG2 if short else USUAL_START_LOG2)
    run.lower(lower_by_id("fp16"))
    run.scaler = dynamic_scaler(run.place.kind, init=init, growth_interval=interval)
    trained = run.train(steps, until.ends)
    return summarised(name, trained.scales, interval, complete=trained.complete)


def summarised(name: str, scales: Sequence[ScaleStep], interval: int, *, complete: bool) -> DynamicScale:
    """What the steps of a run under dynamic scaling amount to."""
    lost = [number for number, step in enumerate(scales) if step.skipped]
    first = next((number for number, step in enumerate(scales) if not step.skipped), None)
    settled = None if first is None else sum(n > first for n in lost) / max(len(scales) - first, 1)
    changes = [
        (number, _log2(step.scale))
        for number, step in enumerate(scales)
        if number == 0 or step.scale != scales[number - 1].scale
    ]
    return DynamicScale(
        name=name,
        init_scale_log2=_log2(scales[0].scale),
        growth_interval=interval,
        growth_factor=2.0,
        backoff_factor=0.5,
        steps=len(scales),
        skipped=len(lost),
        skipped_step_ratio=len(lost) / len(scales),
        settled_skipped_step_ratio=settled,
        steady_skipped_step_ratio=1.0 / (interval + 1.0),
        overflow_steps=tuple(lost),
        path=tuple(changes),
        complete=complete,
    )


def _log2(scale: float) -> float:
    """Of a scale; one that was halved to nothing, since every step failed, counts as the smallest FP32 number."""
    return math.log2(max(scale, LEAST_SCALE))


def loss_scaling(task: Task, place: Place, until: Slice, keep: Keep) -> Plain:
    """Both kinds of scaling on a task, as a plain document; what there was no time for is named in `cut_short`."""
    recipe = lower_by_id("fp16")
    mode, why = place.mode_of(recipe)
    cut: list[str] = []
    static: list[Plain] = []
    dynamic: list[Plain] = []
    static_until = until.first(0.6)
    run = Run(task, 0, place)
    start = run.state()
    tried: dict[int, bool] = {}
    while (power := next_power(tried)) is not None:
        try:
            static_until.must_last()
            row = keep(f"static/{power}", partial(_static_row, run, start, power, recipe))
        except OutOfTimeError:
            break
        static.append(row)
        tried[power] = bool(row["skipped"])
    if len(static) < len(POWERS):
        cut.append(f"{len(POWERS) - len(static)} of {len(POWERS)} static scales")
    for name, share in (("usual", 0.5), ("short", 1.0)):
        part = until.first(share)

        def measure(name: str = name, part: Slice = part) -> Plain:
            run.restore(start)
            return asdict(dynamic_scale(run, name, _steps_in(run, start, part.left_s), part))

        dynamic.append(keep(f"dynamic/{name}", measure))
    static.sort(key=lambda row: int(row["scale_log2"]))
    fits = [row["scale_log2"] for row in static if not row["skipped"]]
    over = [row["scale_log2"] for row in static if row["skipped"]]
    return {
        "precision": recipe.id, "mode": mode, "why_emulated": why, "static": static, "dynamic": dynamic,
        "largest_without_overflow_log2": max(fits, default=None),
        "smallest_with_overflow_log2": min(over, default=None), "cut_short": cut,
    }  # fmt: skip


def _steps_in(run: Run, start: Plain, left_s: float) -> int:
    """Steps for which there is time, by the time of two."""
    run.lower(lower_by_id("fp16"))
    run.scaler = dynamic_scaler(run.place.kind)
    timed = run.train(2)
    run.restore(start)
    each_s = max(timed.wall_s / 2.0, 1e-4)
    return int(min(max(0.8 * left_s / each_s, LEAST_STEPS), MOST_STEPS))
