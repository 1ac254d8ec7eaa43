"""Loss scaling in FP16: every static scale from 2^0 to 2^40, and dynamic scaling as `torch.amp.GradScaler` does it.

A step whose gradients hold an infinity or NaN is skipped. Skipped steps are the goodput that loss scaling costs
(Micikevicius et al., arXiv 1710.03740; PyTorch's `torch.amp` documentation has the defaults).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from functools import partial
from itertools import pairwise
from math import exp, factorial
from typing import Any

import torch

from planner.lazy import dataclass
from probes.numerics.instruments.reach import reach
from probes.numerics.instruments.time import Keep, OutOfTimeError, Plain, TimeBudget, count_of, missing
from probes.numerics.lowering.recipes import LowerRecipe, lower_by_id
from probes.numerics.tasks.interface import Task
from probes.numerics.training import Place, Run, ScaleStep, dynamic_scaler

POWERS = range(41)
STEPS_EACH = 4
"""Steps at each static scale."""
GIVEN_UP_AFTER = 2
"""A static scale is given up if this many first steps all overflow, because later steps would too."""
USUAL_INTERVAL = 2000
"""Steps without overflow after which torch's scaler doubles the scale."""
MOST_STEPS = 400
LEAST_STEPS = 20
LEAST_SCALE = 2.0**-149
CLEARLY = 0.01
"""Poisson probability below which more skips than the growth interval explains are no accident."""
ARITHMETIC, MEASURED = "arithmetic", "measured"
"""What a steady share of skipped steps is based on: the growth interval alone, or the steps of the run."""
WARM_OCTAVES = 6
"""Octaves above and below the scale that a run settled at, within which the limit from a warm start is searched."""
HIGH_START_LOG2 = 24
USUAL_START_LOG2 = 16
"""Log2 of the initial scale, for a short interval and for torch's defaults. The initial scale for a short interval is
above what FP16 holds for most models, so that the scaler backs off."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StaticScale:
    """Training at one fixed scale."""

    scale_log2: int
    steps: int
    """Steps tried."""
    skipped: int
    """Steps among them that were lost to an overflow."""
    loss: float | None
    """Last training loss; None if it is not finite or every step was skipped."""

    @property
    def overflows(self) -> bool:
        """Whether any step overflowed."""
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
    """Share of this run's steps that were skipped: the lost goodput."""
    settled_skipped_step_ratio: float | None
    """Share of steps skipped after the first step taken, so without the search for a first scale. None: none taken."""
    late_skipped_step_ratio: float | None
    """Share skipped in the second half, when the search for a scale should be over. None: no step was taken at all."""
    steady_skipped_step_ratio: float | None
    """Share that a long run skips; `steady_basis` says how it is known. None: no step was taken, so nothing trains."""
    steady_basis: str | None
    """`arithmetic`: one step per growth interval, in which one doubling too far is undone, an assumption that the steps
    of this run do not contradict; `measured`: clearly more steps were skipped, and the share is that of the second
    half."""
    overflow_steps: tuple[int, ...]
    """Numbers of the skipped steps."""
    path: tuple[tuple[int, float], ...]
    """Step and log2 of the scale, at the start and at each change."""
    complete: bool


class StaticScaler(torch.amp.GradScaler):  # type: ignore[misc] # torch is untyped here
    """Skips a step as torch's scaler does, and never changes the scale."""

    def __init__(self, kind: str, scale: float) -> None:
        super().__init__(kind, init_scale=scale, growth_interval=2**31 - 1)
        self._fixed = scale

    def update(self, new_scale: Any = None) -> None:
        """Prepare the next step at the same scale."""
        super().update(self._fixed)


def next_power(tried: Mapping[int, bool], powers: Sequence[int] = POWERS) -> int | None:
    """Return the scale to try next: the two ends, then the onset of overflow, then the middle of the widest gap.

    The limit is therefore known after a few scales, and the range is covered evenly whenever the time runs out.

    Args:
        tried: by log2 of each scale tried, whether it overflowed.
        powers: log2 of all scales, ascending and without gaps.

    Returns:
        Log2 of the scale; None if all were tried.
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
    """Take a few steps at one scale, from the same start."""
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


def dynamic_scale(run: Run, name: str, steps: int, budget: TimeBudget) -> DynamicScale:
    """Train under dynamic scaling until all steps are taken or the time is up."""
    short = name == "short"
    interval = max(steps // 10, 5) if short else USUAL_INTERVAL
    init = 2.0 ** (HIGH_START_LOG2 if short else USUAL_START_LOG2)
    run.lower(lower_by_id("fp16"))
    run.scaler = dynamic_scaler(run.place.kind, init=init, growth_interval=interval)
    result = run.train(steps, budget.end_s)
    return summarised(name, result.scales, interval, complete=result.complete)


def summarised(name: str, scales: Sequence[ScaleStep], interval: int, *, complete: bool) -> DynamicScale:
    """Summarise the steps of a run under dynamic scaling."""
    lost = [number for number, step in enumerate(scales) if step.skipped]
    first = next((number for number, step in enumerate(scales) if not step.skipped), None)
    settled = None if first is None else sum(n > first for n in lost) / max(len(scales) - first, 1)
    late = None if first is None else _late(lost, len(scales))
    steady, basis = _steady(late, len(scales) - len(scales) // 2, interval)
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
        late_skipped_step_ratio=late,
        steady_skipped_step_ratio=steady,
        steady_basis=basis,
        overflow_steps=tuple(lost),
        path=tuple(changes),
        complete=complete,
    )


def _late(lost: Sequence[int], steps: int) -> float:
    half = steps // 2
    return sum(number >= half for number in lost) / max(steps - half, 1)


def _steady(late: float | None, steps: int, interval: int) -> tuple[float | None, str | None]:
    """Return the share of steps that a long run skips, and what it is based on."""
    if late is None:
        return None, None
    arithmetic_ratio = 1.0 / (interval + 1.0)
    if late > arithmetic_ratio and poisson_tail(round(late * steps), arithmetic_ratio * steps) < CLEARLY:
        return late, MEASURED
    return arithmetic_ratio, ARITHMETIC


def poisson_tail(count: int, expected: float) -> float:
    """Return the Poisson probability of at least `count` events if `expected` are expected."""
    return max(1.0 - sum(exp(-expected) * expected**k / factorial(k) for k in range(min(count, 100))), 0.0)


def _log2(scale: float) -> float:
    """Return log2 of a scale; one that was halved to zero, as every step failed, counts as the smallest FP32 number."""
    return math.log2(max(scale, LEAST_SCALE))


def loss_scaling(task: Task, place: Place, budget: TimeBudget, keep: Keep) -> Plain:
    """Measure static and dynamic scaling on a task; return a plain document, with what is missing in `cut_short`."""
    recipe = lower_by_id("fp16")
    mode, why = place.mode_of(recipe)
    if (why_not := reach(task, place, recipe, keep)["why_not_applied"]) is not None:
        unknown = dict.fromkeys(("largest_without_overflow_log2", "smallest_with_overflow_log2",
                                 "largest_without_overflow_warm_log2", "trains"))  # fmt: skip
        return {"precision": recipe.id, "mode": mode, "why_emulated": why, "why_not_applied": why_not, "static": [],
                "dynamic": [], "static_steps": STEPS_EACH, "warm_steps": 0, **unknown, "cut_short": []}  # fmt: skip
    cut: list[str] = []
    dynamic: list[Plain] = []
    run = Run(task, 0, place)
    start = run.state()
    tried: dict[int, Plain] = {}
    _try_scales(run, start, recipe, tried, budget.portion(0.4), keep, only_limit=True)
    for name, share in (("usual", 0.35), ("short", 0.45)):
        part = budget.portion(share)

        def measure(name: str = name, part: TimeBudget = part) -> Plain:
            run.restore(start)
            return asdict(dynamic_scale(run, name, _steps_in(run, start, part.left_s), part))

        dynamic.append(keep(f"dynamic/{name}", measure))
        if not dynamic[-1]["complete"]:
            cut.append(f"dynamic scaling ({name}): stopped after {count_of(dynamic[-1]['steps'], 'step')}")
    warm = _warm_limit(run, dynamic[-1], budget.portion(0.7), keep, cut)
    _try_scales(run, start, recipe, tried, budget, keep)
    static = [tried[power] for power in sorted(tried)]
    if len(static) < len(POWERS):
        cut.append(missing(len(POWERS) - len(static), len(POWERS), "static scales"))
    fits = [row["scale_log2"] for row in static if not row["skipped"]]
    over = [row["scale_log2"] for row in static if row["skipped"]]
    return {
        "precision": recipe.id, "mode": mode, "why_emulated": why, "why_not_applied": None,
        "static": static, "dynamic": dynamic,
        "static_steps": STEPS_EACH, "largest_without_overflow_log2": max(fits, default=None),
        "smallest_with_overflow_log2": min(over, default=None), **warm,
        "trains": trains(static, dynamic), "cut_short": cut,
    }  # fmt: skip


def _try_scales(
    run: Run, start: Plain, recipe: LowerRecipe, tried: dict[int, Plain], budget: TimeBudget, keep: Keep, *,
    only_limit: bool = False,
) -> None:  # fmt: skip
    """Try static scales while there is time; with `only_limit`, until the onset of overflow is known."""
    while True:
        overflows = {power: bool(row["skipped"]) for power, row in tried.items()}
        power = next_power(overflows)
        if power is None or (only_limit and len(tried) > 1 and not _is_at_limit(overflows, power)):
            return
        try:
            budget.require()
            tried[power] = keep(f"static/{power}", partial(_static_row, run, start, power, recipe))
        except OutOfTimeError:
            return


def _is_at_limit(overflows: Mapping[int, bool], power: int) -> bool:
    """Return whether a scale lies between one that overflows and one that does not."""
    below = max(known for known in overflows if known < power)
    above = min(known for known in overflows if known > power)
    return overflows[below] != overflows[above]


def known_limit(document: Plain) -> int | None:
    """Return log2 of the largest scale known not to overflow, neither at first nor after some training; None: unknown.

    A scale counts as a limit only if the next one was seen to overflow; otherwise it is merely the largest one tried.
    """
    fits, over = document.get("largest_without_overflow_log2"), document.get("smallest_with_overflow_log2")
    at_first = fits if fits is not None and over == fits + 1 else None
    limits = [at_first, document.get("largest_without_overflow_warm_log2")]
    return min((int(limit) for limit in limits if limit is not None), default=None)


def trains(static: Sequence[Plain], dynamic: Sequence[Plain]) -> bool | None:
    """Return whether any step was taken at any scale; False means that FP16 cannot train this model.

    None: no step was taken, but the lowest scale was not reached, and the model might train with it.
    """
    if any(row["skipped"] < row["steps"] for row in (*static, *dynamic)):
        return True
    lowest = [float(row["scale_log2"]) for row in static] + [float(row["path"][-1][1]) for row in dynamic]
    return False if min(lowest, default=math.inf) <= POWERS[0] else None


def _warm_limit(run: Run, last: Plain, budget: TimeBudget, keep: Keep, cut: list[str]) -> Plain:
    """Find by bisection the largest static scale without overflow for a model that has trained for a while.

    Args:
        run: as the last run of dynamic scaling left it; if that run was stored earlier, it is trained again.
        last: the document of that run.
        budget: time for the search.
        keep: stores the answer.
        cut: receives a line if there is no time.
    """

    def measure() -> Plain:
        recipe = lower_by_id("fp16")
        if run.step < int(last["steps"]):
            run.lower(recipe)
            run.scaler = dynamic_scaler(run.place.kind, init=2.0 ** last["path"][-1][1])
            run.train(int(last["steps"]), budget.end_s)
        start, steps = run.state(), run.step
        settled = int(last["path"][-1][1])
        low, high = settled - WARM_OCTAVES, settled + WARM_OCTAVES + 1
        while high - low > 1:
            budget.require()
            middle = (low + high) // 2
            low, high = (low, middle) if static_scale(run, start, middle, recipe).overflows else (middle, high)
        is_known = low > settled - WARM_OCTAVES
        return {"warm_steps": steps, "largest_without_overflow_warm_log2": low if is_known else None}

    try:
        if last["settled_skipped_step_ratio"] is not None:
            return keep("warm", measure)
        is_short = not last["complete"]  # else no step can be taken, and there is nothing to start from
    except OutOfTimeError:
        is_short = True
    if is_short:
        cut.append("the largest scale after some training was not looked for")
    return {"warm_steps": 0, "largest_without_overflow_warm_log2": None}


def _steps_in(run: Run, start: Plain, left_s: float) -> int:
    """Return the number of steps for which there is time, from the time of two steps."""
    run.lower(lower_by_id("fp16"))
    run.scaler = dynamic_scaler(run.place.kind)
    timed = run.train(2)
    run.restore(start)
    each_s = max(timed.wall_s / 2.0, 1e-4)
    return int(min(max(0.8 * left_s / each_s, LEAST_STEPS), MOST_STEPS))
