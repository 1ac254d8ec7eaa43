"""Parity: paired runs from the same seeds in FP32 and in a lower precision, tested for equivalence.

Each seed gives weights and data; its runs differ in precision alone, and their difference is one sample. A run of FP32
whose weights are moved by a millionth at the start shows what chaos alone makes of two runs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from functools import partial

import torch

from probes.numerics.instruments.reach import reach
from probes.numerics.instruments.time import Keep, OutOfTimeError, Plain, Slice, missing
from probes.numerics.lowering.recipes import REAL, LowerRecipe
from probes.numerics.statistics.equivalence import ALPHA, LEAST_PAIRS, VERDICTS, compare
from probes.numerics.tasks.interface import Task
from probes.numerics.training import Place, Run, dynamic_scaler

BASELINE, NULL = "fp32", "fp32-moved"
NOT_APPLIED, NOT_RUN = "not_applied", "not_run"
PARITY_VERDICTS = (*VERDICTS, NOT_APPLIED, NOT_RUN)
"""Those of the test, and: the precision reaches nothing of the model; no pair was trained."""
MOVED = 1e-6
"""Relative change of each weight in the null pair."""
SEEDS = 8
NOTHING_LOWERED = {"lowered_matrices": 0, "matrices": None, "why_not_applied": None}
"""Of FP32 against itself."""
NO_PLAN: Plain = {"steps": 0, "seeds": 0, "precisions": [], "seed_s": 0.0, "base_s": 0.0, "alone_s": {}}
"""Where no precision reaches the model: FP32 alone says nothing."""
LEAST_SEEDS = 3
LEAST_STEPS = 30
TIMED_STEPS = 3
SLOW_RATIO = 0.02
"""Of the time, a first step from which a precision is not timed any further."""
RESERVE = 0.85
"""Of the time that is planned for."""


def trained(
    task: Task, place: Place, recipe: LowerRecipe | None, seed: int, steps: int, *, moved: bool = False
) -> Plain:
    """One run: its figures, time and skipped steps."""
    run = Run(task, seed, place)
    if moved:
        move(run, seed)
    run.lower(recipe)
    if recipe is not None and recipe.loss_scaling:
        run.scaler = dynamic_scaler(place.kind)
    result = run.train(steps)
    skipped = sum(step.skipped for step in result.scales)
    figures = {name: value if math.isfinite(value) else None for name, value in result.figures.items()}
    return {
        "figures": figures, "wall_s": result.wall_s, "steps": len(result.losses), "skipped": skipped,
        "real_layers": result.real_layers, "lowered_layers": result.lowered_layers,
    }  # fmt: skip


def _in_time(until: Slice, work: Callable[[], Plain]) -> Plain:
    """A run that is begun only while there is time; of a seed that is left, only whole sets of runs count."""
    until.must_last()
    return work()


def move(run: Run, seed: int) -> None:
    """Change every weight by about a millionth of itself."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in run.parameters:
            noise = torch.randn(parameter.shape, generator=generator).to(parameter.device)
            parameter.mul_(1.0 + MOVED * noise)


def planned(task: Task, place: Place, recipes: Sequence[LowerRecipe], seeds: int, left_s: float) -> Plain:
    """Steps and seeds for which there is time, by the time of a few steps in each precision."""
    base_s = _step_s(task, place, None, left_s)
    cost_s = {recipe.id: _step_s(task, place, recipe, left_s) for recipe in recipes}
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
        "steps": steps, "seeds": count, "precisions": chosen, "seed_s": each_s * steps, "base_s": base_s * steps,
        "alone_s": {name: cost_s[name] * steps for name in cost_s},
    }  # fmt: skip


def _step_s(task: Task, place: Place, recipe: LowerRecipe | None, left_s: float) -> float:
    first_s = float(trained(task, place, recipe, 0, 1)["wall_s"])  # it makes threads and kernels
    if first_s > SLOW_RATIO * left_s:
        return first_s  # too slow to be tried again, and too slow to be chosen
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
    reached = {recipe.id: reach(task, place, recipe, keep) for recipe in recipes}
    usable = [recipe for recipe in recipes if reached[recipe.id]["why_not_applied"] is None]
    plan = keep("plan", lambda: planned(task, place, usable, seeds, until.left_s)) if usable else NO_PLAN
    chosen = [recipe for recipe in usable if recipe.id in plan["precisions"]]
    runs: dict[str, list[Plain]] = {BASELINE: [], NULL: [], **{recipe.id: [] for recipe in recipes}}
    steps = int(plan["steps"])
    done = 0
    try:
        for seed in range(int(plan["seeds"])):
            until.must_last(0.8 * float(plan["seed_s"]) if done >= 2 else 0.0)
            each: list[tuple[str, LowerRecipe | None]] = [(BASELINE, None), *((recipe.id, recipe) for recipe in chosen)]
            once: dict[str, Plain] = {}
            for name, recipe in (*each, (NULL, None)):
                work = partial(trained, task, place, recipe, seed, steps, moved=name == NULL)
                once[name] = keep(f"{name}/{seed}", partial(_in_time, until, work))
            for name, result in once.items():
                runs[name].append(result)
            done += 1
    except OutOfTimeError:
        pass
    cut = [missing(int(plan["seeds"]) - done, int(plan["seeds"]), "seeds")] if done < int(plan["seeds"]) else []
    for recipe in (recipe for recipe in usable if recipe.id not in plan["precisions"]):
        wait_s = float(plan["alone_s"].get(recipe.id, 0.0))
        runs[recipe.id] = _late(task, place, recipe, range(done), steps, until, keep, wait_s)
        if (late := len(runs[recipe.id])) < max(done, LEAST_SEEDS):
            what = missing(done - late, done, "seeds") if late else "not run"
            cut.append(f"{recipe.id}: {what} ({_why_last(wait_s, float(plan['base_s']))})")
    return {
        "metric": metric, "margin": margin, "steps": steps, "seeds": done, "baseline": BASELINE,
        "baseline_mean": _mean(runs[BASELINE], metric),
        "pairs": [_pair(recipe.id, recipe, place, runs, metric, margin, reached[recipe.id]) for recipe in recipes],
        "null": _pair(NULL, None, place, runs, metric, margin, NOTHING_LOWERED),
        "tests": sum(len(runs[recipe.id]) >= LEAST_PAIRS for recipe in usable), "alpha": ALPHA, "cut_short": cut,
    }  # fmt: skip


def _why_last(alone_s: float, base_s: float) -> str:
    """Why a precision was left to the end: its cost here, which says nothing of its cost on a GPU."""
    return f"the slowest comes last: a step takes {alone_s / max(base_s, 1e-9):.1f} times FP32's on this device"


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
    name: str, recipe: LowerRecipe | None, place: Place, runs: dict[str, list[Plain]], metric: str, margin: float,
    reached: Plain,
) -> Plain:  # fmt: skip
    counts = [(run["real_layers"], run["lowered_layers"]) for run in runs[name]]
    execution = place.ran(recipe, counts) if recipe is not None else _plain_fp32()
    both = list(zip(runs[name], runs[BASELINE], strict=False))
    values = [(_figure(low, metric), _figure(high, metric)) for low, high in both]
    usable = [(low, high) for low, high in values if math.isfinite(high)]
    outcome = asdict(compare([low - high for low, high in usable], margin))
    if len(usable) < len(values):
        broken = len(values) - len(usable)
        outcome["reason"] += f"; {broken} run{'' if broken == 1 else 's'} of FP32 itself ended without a finite figure"
    if (why := reached["why_not_applied"]) is not None:
        outcome |= {"verdict": NOT_APPLIED, "reason": why}
    elif not values:
        outcome |= {"verdict": NOT_RUN, "reason": "no pair was trained"}
    skipped = sum(run["skipped"] for run in runs[name])
    taken = sum(run["steps"] for run in runs[name])
    return {
        "precision": name, "baseline": BASELINE, **execution, "lowered_matrices": reached["lowered_matrices"],
        "matrices": reached["matrices"], "metric": metric, **outcome,
        "differences": [_or_none(low - high) for low, high in values],
        "skipped_step_ratio": skipped / taken if recipe is not None and recipe.loss_scaling and taken else None,
        "mean": _mean(runs[name], metric), "baseline_mean": _mean([high for _, high in both], metric),
    }  # fmt: skip


def _plain_fp32() -> Plain:
    return {"mode": REAL, "why_emulated": None, "real_layers": 0, "lowered_layers": 0}


def _figure(run: Plain, metric: str) -> float:
    value = run["figures"].get(metric)
    return math.nan if value is None else float(value)


def _mean(runs: Sequence[Plain], metric: str) -> float | None:
    values = [_figure(run, metric) for run in runs]
    return _or_none(sum(values) / len(values)) if values else None


def _or_none(value: float) -> float | None:
    return value if math.isfinite(value) else None
