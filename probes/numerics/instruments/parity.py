"""Parity: paired runs from the same seeds in FP32 and in a lower precision, tested for equivalence.

Each seed gives weights and data; its runs differ in precision alone, and their difference is one sample. A run of FP32
whose weights are moved by a millionth at the start shows what chaos alone makes of two runs.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from functools import partial

import torch

from probes.numerics.instruments.time import Keep, OutOfTimeError, Plain, Slice
from probes.numerics.lowering.recipes import LowerRecipe
from probes.numerics.statistics.equivalence import LEAST_PAIRS, compare
from probes.numerics.tasks.interface import Task
from probes.numerics.training import Place, Run, dynamic_scaler

BASELINE, NULL = "fp32", "fp32-moved"
MOVED = 1e-6
"""Relative change of each weight in the null pair."""
SEEDS = 8
LEAST_SEEDS = 3
LEAST_STEPS = 30
TIMED_STEPS = 3
RESERVE = 0.85
"""Of the time that is planned for."""


def trained(
    task: Task, place: Place, recipe: LowerRecipe | None, seed: int, steps: int, *, moved: bool = False
) -> Plain:
    """One run: its figures, time and skipped steps."""
    real = (recipe.id,) if recipe is not None and place.runs_for_real(recipe) else ()
    run = Run(task, seed, place, real)
    if moved:
        move(run, seed)
    run.lower(recipe)
    if recipe is not None and recipe.loss_scaling:
        run.scaler = dynamic_scaler(place.kind)
    result = run.train(steps)
    skipped = sum(step.skipped for step in result.scales)
    figures = {name: value if math.isfinite(value) else None for name, value in result.figures.items()}
    return {"figures": figures, "wall_s": result.wall_s, "steps": len(result.losses), "skipped": skipped}


def move(run: Run, seed: int) -> None:
    """Change every weight by about a millionth of itself."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in run.parameters:
            noise = torch.randn(parameter.shape, generator=generator).to(parameter.device)
            parameter.mul_(1.0 + MOVED * noise)


def planned(task: Task, place: Place, recipes: Sequence[LowerRecipe], seeds: int, left_s: float) -> Plain:
    """Steps and seeds for which there is time, by the time of a few steps in each precision."""
    base_s = _step_s(task, place, None)
    cost_s = {recipe.id: _step_s(task, place, recipe) for recipe in recipes}
    return shared_out(base_s, cost_s, seeds, left_s, task.steps[place.size])


def shared_out(base_s: float, cost_s: Mapping[str, float], seeds: int, left_s: float, most: int) -> Plain:
    """Steps and seeds for which there is time.

    Precisions that leave no time for `LEAST_SEEDS` seeds of `LEAST_STEPS` are left out, the slowest first.

    Args:
        base_s: seconds of a step of FP32.
        cost_s: the same of each lower precision, by id.
        seeds: most pairs of runs.
        left_s: time for all of it.
        most: steps of a run, at most.
    """
    chosen = list(cost_s)
    room_s = RESERVE * left_s
    while len(chosen) > 1 and room_s < LEAST_SEEDS * LEAST_STEPS * (2 * base_s + sum(cost_s[name] for name in chosen)):
        chosen.remove(max(chosen, key=lambda name: cost_s[name]))
    each_s = 2 * base_s + sum(cost_s[name] for name in chosen)
    count = max(min(seeds, int(room_s / (each_s * LEAST_STEPS))), LEAST_SEEDS)
    steps = int(min(max(room_s / (count * each_s), LEAST_STEPS), most))
    return {
        "steps": steps, "seeds": count, "precisions": chosen, "seed_s": each_s * steps,
        "alone_s": {name: cost_s[name] * steps for name in cost_s},
    }  # fmt: skip


def _step_s(task: Task, place: Place, recipe: LowerRecipe | None) -> float:
    trained(task, place, recipe, 0, 1)  # the first step makes threads and kernels
    return max(float(trained(task, place, recipe, 0, TIMED_STEPS)["wall_s"]) / TIMED_STEPS, 1e-4)


def parity(
    task: Task,
    place: Place,
    recipes: Sequence[LowerRecipe],
    until: Slice,
    keep: Keep,
    *,
    margin: float,
    metric: str = "loss",
    seeds: int = SEEDS,
) -> Plain:
    """Paired runs of a task in FP32 and each recipe, as a plain document.

    Args:
        task: what is trained.
        place: where.
        recipes: the lower precisions.
        until: time for it.
        keep: keeps each run.
        margin: half the width of what counts as equal, in the metric.
        metric: `loss` or `accuracy`.
        seeds: most pairs of runs.
    """
    plan = keep("plan", lambda: planned(task, place, recipes, seeds, until.left_s))
    chosen = [recipe for recipe in recipes if recipe.id in plan["precisions"]]
    runs: dict[str, list[Plain]] = {BASELINE: [], NULL: [], **{recipe.id: [] for recipe in chosen}}
    steps = int(plan["steps"])
    done = 0
    try:
        for seed in range(int(plan["seeds"])):
            until.must_last(0.8 * float(plan["seed_s"]) if done >= 2 else 0.0)
            once = {
                BASELINE: keep(f"{BASELINE}/{seed}", partial(trained, task, place, None, seed, steps)),
                NULL: keep(f"{NULL}/{seed}", partial(trained, task, place, None, seed, steps, moved=True)),
            }
            for recipe in chosen:
                once[recipe.id] = keep(f"{recipe.id}/{seed}", partial(trained, task, place, recipe, seed, steps))
            for name, result in once.items():
                runs[name].append(result)
            done += 1
    except OutOfTimeError:
        pass
    cut = [f"{int(plan['seeds']) - done} of {plan['seeds']} seeds"] if done < int(plan["seeds"]) else []
    for recipe in (recipe for recipe in recipes if recipe.id not in plan["precisions"]):
        wait_s = float(plan["alone_s"].get(recipe.id, 0.0))
        runs[recipe.id] = _late(task, place, recipe, range(done), steps, until, keep, wait_s)
        if (late := len(runs[recipe.id])) < max(done, LEAST_SEEDS):
            cut.append(f"parity of {recipe.id}" + (f": {done - late} of {done} seeds" if late else ""))
        if late >= LEAST_PAIRS:
            chosen.append(recipe)
    return {
        "metric": metric, "margin": margin, "steps": steps, "seeds": done, "baseline": BASELINE,
        "baseline_mean": _mean(runs[BASELINE], metric),
        "pairs": [_pair(recipe.id, recipe, place, runs, metric, margin) for recipe in recipes if recipe in chosen],
        "null": _pair(NULL, None, place, runs, metric, margin), "cut_short": cut,
    }  # fmt: skip


def _late(
    task: Task, place: Place, recipe: LowerRecipe, seeds: Sequence[int], steps: int, until: Slice, keep: Keep,
    wait_s: float,
) -> list[Plain]:  # fmt: skip
    """Runs of a precision for which the plan had no time, as far as there is some now."""
    rows = []
    try:
        for seed in seeds:
            until.must_last(wait_s)
            rows.append(keep(f"{recipe.id}/{seed}", partial(trained, task, place, recipe, seed, steps)))
    except OutOfTimeError:
        pass
    return rows


def _pair(
    name: str, recipe: LowerRecipe | None, place: Place, runs: dict[str, list[Plain]], metric: str, margin: float
) -> Plain:
    mode, why = place.mode_of(recipe) if recipe is not None else ("real", None)
    both = zip(runs[name], runs[BASELINE], strict=False)
    values = [(_figure(low, metric), _figure(high, metric)) for low, high in both]
    usable = [(low, high) for low, high in values if math.isfinite(high)]
    found = asdict(compare([low - high for low, high in usable], margin))
    if len(usable) < len(values):
        found["reason"] += f"; {len(values) - len(usable)} runs of FP32 itself ended without a finite figure"
    skipped = sum(run["skipped"] for run in runs[name])
    taken = sum(run["steps"] for run in runs[name])
    return {
        "precision": name, "baseline": BASELINE, "mode": mode, "why_emulated": why, "metric": metric, **found,
        "differences": [_or_none(low - high) for low, high in values],
        "skipped_step_ratio": skipped / taken if recipe is not None and recipe.loss_scaling and taken else None,
        "mean": _mean(runs[name], metric),
    }  # fmt: skip


def _figure(run: Plain, metric: str) -> float:
    value = run["figures"].get(metric)
    return math.nan if value is None else float(value)


def _mean(runs: Sequence[Plain], metric: str) -> float | None:
    values = [_figure(run, metric) for run in runs]
    return _or_none(sum(values) / len(values)) if values else None


def _or_none(value: float) -> float | None:
    return value if math.isfinite(value) else None
