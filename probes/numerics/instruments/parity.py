"""Parity: paired runs from the same seeds in FP32 and in a lower precision, tested for equivalence.

Each seed fixes the weights and the data; its runs differ only in precision, and their difference is one sample. An FP32
run whose weights are perturbed by a millionth at the start shows how far chaos alone drives two runs apart.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from functools import partial

import torch

from probes.numerics.instruments.reach import reach
from probes.numerics.instruments.time import Keep, OutOfTimeError, Plain, TimeBudget, missing
from probes.numerics.lowering.recipes import REAL, LowerRecipe
from probes.numerics.statistics.equivalence import ALPHA, LEAST_PAIRS, VERDICTS, compare
from probes.numerics.tasks.interface import Task
from probes.numerics.training import Place, Run, dynamic_scaler

BASELINE, NULL = "fp32", "fp32-moved"
NOT_APPLIED, NOT_RUN = "not_applied", "not_run"
PARITY_VERDICTS = (*VERDICTS, NOT_APPLIED, NOT_RUN)
"""Verdicts of the test, and two more: the precision reaches nothing of the model; no pair was trained."""
MOVED = 1e-6
"""Relative perturbation of each weight in the null pair."""
SEEDS = 8
NOTHING_LOWERED = {"lowered_matrices": 0, "matrices": None, "why_not_applied": None}
"""Reach of FP32 in the null pair, which compares it with itself."""
NO_PLAN: Plain = {"steps": 0, "seeds": 0, "precisions": [], "seed_s": 0.0, "base_s": 0.0, "alone_s": {}}
"""Plan if no precision reaches the model, since FP32 alone shows nothing."""
LEAST_SEEDS = 3
LEAST_STEPS = 30
TIMED_STEPS = 3
SLOW_RATIO = 0.02
"""Share of the time; a precision whose first step takes longer is not timed any further."""
RESERVE = 0.85
"""Share of the time left that the plan uses."""


def train_run(
    task: Task, place: Place, recipe: LowerRecipe | None, seed: int, steps: int, *, moved: bool = False
) -> Plain:
    """Train one run; return its figures, time and skipped steps."""
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


def _in_time(budget: TimeBudget, work: Callable[[], Plain]) -> Plain:
    """Begin a run only if there is time left. A seed counts only if all of its runs are finished."""
    budget.require()
    return work()


def move(run: Run, seed: int) -> None:
    """Perturb every weight by about a millionth of itself."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in run.parameters:
            noise = torch.randn(parameter.shape, generator=generator).to(parameter.device)
            parameter.mul_(1.0 + MOVED * noise)


def planned(task: Task, place: Place, recipes: Sequence[LowerRecipe], seeds: int, left_s: float) -> Plain:
    """Plan the steps and seeds for which there is time, by timing a few steps in each precision."""
    base_s = _step_s(task, place, None, left_s)
    cost_s = {recipe.id: _step_s(task, place, recipe, left_s) for recipe in recipes}
    return plan_steps_and_seeds(base_s, cost_s, seeds, left_s, task.steps[place.size])


def plan_steps_and_seeds(base_s: float, cost_s: Mapping[str, float], seeds: int, left_s: float, most: int) -> Plain:
    """Choose the steps and seeds for which there is time.

    Precisions that leave no time for `LEAST_SEEDS` seeds of `LEAST_STEPS` steps are left out, the slowest first.

    Args:
        base_s: seconds of an FP32 step.
        cost_s: seconds of a step in each lower precision, by id.
        seeds: largest number of paired runs.
        left_s: time for everything.
        most: largest number of steps of a run.
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
    first_s = float(train_run(task, place, recipe, 0, 1)["wall_s"])  # includes starting threads and loading kernels
    if first_s > SLOW_RATIO * left_s:
        return first_s  # too slow to be tried again, and too slow to be chosen
    return max(float(train_run(task, place, recipe, 0, TIMED_STEPS)["wall_s"]) / TIMED_STEPS, 1e-4)


def parity(
    task: Task,
    place: Place,
    recipes: Sequence[LowerRecipe],
    budget: TimeBudget,
    keep: Keep,
    *,
    margin: float,
    metric: str = "loss",
    seeds: int = SEEDS,
) -> Plain:
    """Train paired runs of a task in FP32 and in each recipe; return a plain document.

    Args:
        task: what is trained.
        place: device and size.
        recipes: the lower precisions.
        budget: time for the runs.
        keep: stores each run.
        margin: half the width of the interval that counts as equal, in the metric.
        metric: `loss` or `accuracy`.
        seeds: largest number of paired runs.
    """
    reached = {recipe.id: reach(task, place, recipe, keep) for recipe in recipes}
    usable = [recipe for recipe in recipes if reached[recipe.id]["why_not_applied"] is None]
    plan = keep("plan", lambda: planned(task, place, usable, seeds, budget.left_s)) if usable else NO_PLAN
    chosen = [recipe for recipe in usable if recipe.id in plan["precisions"]]
    runs: dict[str, list[Plain]] = {BASELINE: [], NULL: [], **{recipe.id: [] for recipe in recipes}}
    steps = int(plan["steps"])
    done = 0
    try:
        for seed in range(int(plan["seeds"])):
            budget.require(0.8 * float(plan["seed_s"]) if done >= 2 else 0.0)
            each: list[tuple[str, LowerRecipe | None]] = [(BASELINE, None), *((recipe.id, recipe) for recipe in chosen)]
            once: dict[str, Plain] = {}
            for name, recipe in (*each, (NULL, None)):
                work = partial(train_run, task, place, recipe, seed, steps, moved=name == NULL)
                once[name] = keep(f"{name}/{seed}", partial(_in_time, budget, work))
            for name, result in once.items():
                runs[name].append(result)
            done += 1
    except OutOfTimeError:
        pass
    cut = [missing(int(plan["seeds"]) - done, int(plan["seeds"]), "seeds")] if done < int(plan["seeds"]) else []
    for recipe in (recipe for recipe in usable if recipe.id not in plan["precisions"]):
        wait_s = float(plan["alone_s"].get(recipe.id, 0.0))
        runs[recipe.id] = _late(task, place, recipe, range(done), steps, budget, keep, wait_s)
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
    """Return why a precision was left to the end: its cost on this device, which says nothing about a GPU."""
    return f"the slowest comes last: a step takes {alone_s / max(base_s, 1e-9):.1f} times FP32's on this device"


def _late(
    task: Task, place: Place, recipe: LowerRecipe, seeds: Sequence[int], steps: int, budget: TimeBudget, keep: Keep,
    wait_s: float,
) -> list[Plain]:  # fmt: skip
    """Run a precision for which the plan had no time, as far as time is left now."""
    rows = []
    try:
        for seed in seeds:
            budget.require(wait_s)
            rows.append(keep(f"{recipe.id}/{seed}", partial(train_run, task, place, recipe, seed, steps)))
    except OutOfTimeError:
        pass
    return rows


def _pair(
    name: str, recipe: LowerRecipe | None, place: Place, runs: dict[str, list[Plain]], metric: str, margin: float,
    reached: Plain,
) -> Plain:  # fmt: skip
    counts = [(run["real_layers"], run["lowered_layers"]) for run in runs[name]]
    execution = place.ran(recipe, counts) if recipe is not None else _plain_fp32()
    pairs = list(zip(runs[name], runs[BASELINE], strict=False))
    values = [(_figure(low, metric), _figure(high, metric)) for low, high in pairs]
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
        "mean": _mean(runs[name], metric), "baseline_mean": _mean([high for _, high in pairs], metric),
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
