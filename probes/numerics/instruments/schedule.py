"""A schedule of precision: high for the first steps and then low, or low and then high for the last ones."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from statistics import fmean

from probes.numerics.instruments.time import Keep, OutOfTimeError, Plain, Slice
from probes.numerics.lowering.recipes import LowerRecipe
from probes.numerics.tasks.interface import Task
from probes.numerics.training import Place, Run, dynamic_scaler

HIGH_RATIO = 0.2
"""Of the steps that a schedule trains high."""
SEEDS, LEAST_STEPS = 3, 20

SCHEDULES: dict[str, Callable[[int, int], bool]] = {
    "all high": lambda _step, _steps: False,
    "all low": lambda _step, _steps: True,
    "high first": lambda step, steps: step >= HIGH_RATIO * steps,
    "high last": lambda step, steps: step < (1.0 - HIGH_RATIO) * steps,
}
"""Name to whether a step of a run is in the lower precision."""


def scheduled(task: Task, place: Place, recipe: LowerRecipe, name: str, seed: int, steps: int) -> Plain:
    """One run under a schedule; its figure is taken in the precision of its last step."""
    run = Run(task, seed, place, (recipe.id,) if place.runs_for_real(recipe) else ())
    is_low = SCHEDULES[name]
    scaler = dynamic_scaler(place.kind) if recipe.loss_scaling else None

    def turn(step: int) -> None:
        low = is_low(step, steps)
        run.lower(recipe if low else None)
        run.scaler = scaler if low else None

    result = run.train(steps, each=turn)
    loss = result.figures["loss"]
    return {"loss": loss if math.isfinite(loss) else None, "wall_s": result.wall_s}


def schedule(task: Task, place: Place, recipe: LowerRecipe, margin: float, until: Slice, keep: Keep) -> Plain:
    """The schedules of a task, each from the same seeds, and which one to take, as a plain document."""
    mode, why = place.mode_of(recipe)
    rows: dict[str, list[Plain]] = {name: [] for name in SCHEDULES}
    plan: Plain = {"steps": 0, "seeds": 0}
    done = 0
    try:
        plan = keep("plan", partial(_planned, task, place, recipe, until))
        for seed in range(int(plan["seeds"])):
            until.must_last(0.8 * float(plan["seed_s"]) if done else 0.0)
            work = partial(scheduled, task, place, recipe, seed=seed, steps=int(plan["steps"]))
            results = {name: keep(f"{name}/{seed}", partial(work, name=name)) for name in SCHEDULES}
            for name, result in results.items():
                rows[name].append(result)
            done += 1
    except OutOfTimeError:
        pass
    changes = {name: _change(rows[name], rows["all high"]) for name in SCHEDULES}
    cut = [] if done and done == plan["seeds"] else [f"{int(plan['seeds']) - done} of {plan['seeds']} seeds"]
    if not plan["seeds"]:
        cut = ["schedule: no time was left"]
    return {
        "precision": recipe.id, "mode": mode, "why_emulated": why, "high_ratio": HIGH_RATIO, "margin": margin,
        "steps": plan["steps"], "seeds": done,
        "schedules": [{"name": name, "loss": _mean(rows[name]), "loss_change": changes[name]} for name in SCHEDULES],
        "recommended": recommended(changes, margin), "cut_short": cut,
    }  # fmt: skip


def recommended(changes: dict[str, float | None], margin: float) -> str | None:
    """The one with the most low steps within the margin, of two equal ones the better; None where nothing was run."""
    if changes.get("all high") is None:
        return None
    low = changes.get("all low")
    if low is not None and low <= margin:
        return "all low"
    mixed = {name: changes.get(name) for name in ("high first", "high last")}
    fitting = {name: change for name, change in mixed.items() if change is not None and change <= margin}
    return min(fitting, key=lambda name: fitting[name]) if fitting else "all high"


def _planned(task: Task, place: Place, recipe: LowerRecipe, until: Slice) -> Plain:
    until.must_last()
    scheduled(task, place, recipe, "all low", 0, 1)
    low_s = float(scheduled(task, place, recipe, "all low", 0, 3)["wall_s"]) / 3.0
    high_s = float(scheduled(task, place, recipe, "all high", 0, 3)["wall_s"]) / 3.0
    each_s = max((1.0 + 2.0 * HIGH_RATIO) * high_s + (3.0 - 2.0 * HIGH_RATIO) * low_s, 1e-4)
    room_s = 0.8 * max(until.left_s, 0.0)
    seeds = int(min(max(room_s / (each_s * LEAST_STEPS), 1), SEEDS))
    steps = int(min(max(room_s / (each_s * seeds), LEAST_STEPS), task.steps[place.size]))
    return {"steps": steps, "seeds": seeds, "seed_s": each_s * steps}


def _change(rows: list[Plain], high: list[Plain]) -> float | None:
    """Mean paired difference of the loss; infinite losses count as no figure."""
    pairs = [(row["loss"], base["loss"]) for row, base in zip(rows, high, strict=True)]
    if not pairs or any(low is None or base is None for low, base in pairs):
        return None
    return fmean(low - base for low, base in pairs)


def _mean(rows: list[Plain]) -> float | None:
    losses = [row["loss"] for row in rows]
    return fmean(losses) if losses and None not in losses else None
