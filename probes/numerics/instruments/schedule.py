"""Schedules of precision: high for the first steps and then low, or low and then high for the last steps.

Each schedule is paired, seed by seed, with the FP32 run from the same seed. If parity has trained the same precision,
its runs serve as "all high" and "all low", so that the two sections cannot contradict each other.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import partial
from statistics import fmean

from probes.numerics.instruments.parity import BASELINE
from probes.numerics.instruments.policy import TELLING_STEPS
from probes.numerics.instruments.reach import reach
from probes.numerics.instruments.time import Keep, OutOfTimeError, Plain, TimeBudget, count_of, missing
from probes.numerics.instruments.warm_starts import change_of
from probes.numerics.lowering.recipes import LowerRecipe
from probes.numerics.statistics.equivalence import CANNOT_TELL, EQUIVALENT, NOT_EQUIVALENT
from probes.numerics.tasks.interface import Task
from probes.numerics.training import Place, Run, dynamic_scaler

HIGH_RATIO = 0.2
"""Share of the steps that a mixed schedule trains in high precision."""
SEEDS, LEAST_STEPS = 8, 20

ALL_HIGH, ALL_LOW = "all high", "all low"
SCHEDULES: dict[str, Callable[[int, int], bool]] = {
    ALL_HIGH: lambda _step, _steps: False,
    ALL_LOW: lambda _step, _steps: True,
    "high first": lambda step, steps: step >= HIGH_RATIO * steps,
    "high last": lambda step, steps: step < (1.0 - HIGH_RATIO) * steps,
}
"""By name, whether a step is in the lower precision: `(step, steps)`."""


def scheduled(task: Task, place: Place, recipe: LowerRecipe, name: str, seed: int, steps: int) -> Plain:
    """Train one run under a schedule; its loss is evaluated in the precision of the last step."""
    run = Run(task, seed, place)
    is_low = SCHEDULES[name]
    scaler = dynamic_scaler(place.kind) if recipe.loss_scaling else None

    def turn(step: int) -> None:
        low = is_low(step, steps)
        run.lower(recipe if low else None)
        run.scaler = scaler if low else None

    result = run.train(steps, each=turn)
    loss = result.figures["loss"]
    return {
        "loss": loss if math.isfinite(loss) else None, "wall_s": result.wall_s,
        "real_layers": result.real_layers, "lowered_layers": result.lowered_layers,
    }  # fmt: skip


def schedule(
    task: Task,
    place: Place,
    recipe: LowerRecipe,
    margin: float,
    budget: TimeBudget,
    keep: Keep,
    parity: Keep | None = None,
) -> Plain:
    """Train the schedules of a task, each from the same seeds, and recommend one; return a plain document.

    Args:
        task: what is trained.
        place: device and size.
        recipe: the lower precision.
        margin: largest change of the loss.
        budget: time for the runs.
        keep: stores each run.
        parity: returns the results that parity stored for the same task; None: there are none.
    """
    why_not = reach(task, place, recipe, parity or keep)["why_not_applied"]
    rows: dict[str, list[Plain]] = {name: [] for name in SCHEDULES}
    plan: Plain = {"steps": 0, "seeds": 0}
    shared = _runs_of_parity(recipe, parity)
    try:
        if why_not is not None:
            raise OutOfTimeError
        plan = keep("plan", partial(_planned, task, place, recipe, budget, shared))
        steps, seeds = int(plan["steps"]), int(plan["seeds"])
        shared = shared if plan["shared"] else {}
        for name in SCHEDULES:
            rows[name] += shared.get(name, [])
        for seed in range(seeds):
            budget.require(0.8 * float(plan["seed_s"]) if seed or shared else 0.0)
            work = partial(scheduled, task, place, recipe, seed=seed, steps=steps)
            for name in SCHEDULES:
                if len(rows[name]) <= seed:
                    rows[name].append(keep(f"{name}/{seed}", partial(work, name=name)))
    except OutOfTimeError:
        pass
    done = min(len(rows[name]) for name in SCHEDULES)
    changes = {name: _change(rows[name], rows[ALL_HIGH], margin) for name in SCHEDULES}
    cut = [] if done and done == plan["seeds"] else [missing(int(plan["seeds"]) - done, int(plan["seeds"]), "seeds")]
    if not plan["seeds"]:
        cut = ["no time was left"] if why_not is None else []
    steps = int(plan["steps"])
    chosen, why = recommended(changes, margin, steps) if why_not is None else (None, f"not applied: {why_not}")
    lowered = [(row["real_layers"], row["lowered_layers"]) for row in rows[ALL_LOW]]
    return {
        "precision": recipe.id, **place.ran(recipe, lowered), "high_ratio": HIGH_RATIO, "margin": margin,
        "baseline": BASELINE, "start": "scratch", "warm_steps": 0, "steps": plan["steps"], "seeds": done,
        "schedules": [{"name": name, "loss": _mean(rows[name]), **changes[name]} for name in SCHEDULES],
        "recommended": chosen, "words": why, "cut_short": cut,
    }  # fmt: skip


def _runs_of_parity(recipe: LowerRecipe, parity: Keep | None) -> dict[str, list[Plain]]:
    """Return the runs of "all high" and "all low" by seed, for the first seeds for which parity has both."""
    shared: dict[str, list[Plain]] = {ALL_HIGH: [], ALL_LOW: []}

    def not_there() -> Plain:
        raise OutOfTimeError

    try:
        for seed in range(SEEDS if parity is not None else 0):
            pair = [parity(f"{name}/{seed}", not_there) for name in (BASELINE, recipe.id)] if parity else []
            for name, run in zip(shared, pair, strict=True):
                shared[name].append({**run, "loss": run["figures"].get("loss")})
    except OutOfTimeError:
        pass
    return {name: rows[: len(shared[ALL_LOW])] for name, rows in shared.items()}


def recommended(changes: Mapping[str, Plain], margin: float, steps: int) -> tuple[str | None, str]:
    """Return the schedule with the most low steps that was shown to be equivalent to all high, and the reason.

    Of two equivalent mixed schedules, the one with the lower upper end of the interval is chosen. All high is chosen if
    every other schedule was shown not to be equivalent. None: this could not be decided, or the runs were too short to
    recommend low steps.
    """
    chosen, why = _shown(changes, margin)
    if chosen in (None, ALL_HIGH) or steps >= TELLING_STEPS:
        return chosen, why
    return None, f"no recommendation from fewer than {TELLING_STEPS} steps; over {steps} steps, {why}"


def _shown(changes: Mapping[str, Plain], margin: float) -> tuple[str | None, str]:
    verdicts = {name: change["verdict"] for name, change in changes.items() if name != ALL_HIGH}
    if not changes[ALL_HIGH]["seeds"]:
        return None, "unknown: nothing was trained"
    if verdicts[ALL_LOW] == EQUIVALENT:
        return ALL_LOW, f"all steps can be low: the interval of the loss lies within {margin:g}"
    alike = {name: changes[name] for name, verdict in verdicts.items() if verdict == EQUIVALENT}
    if alike:
        best = min(alike, key=lambda name: float(alike[name]["loss_change_high"]))
        why = "was not shown to be" if verdicts[ALL_LOW] == CANNOT_TELL else "is not"
        return best, f"the interval of the loss lies within {margin:g}; all low {why} equivalent"
    if all(verdict == NOT_EQUIVALENT for verdict in verdicts.values()):
        return ALL_HIGH, f"every schedule with low steps changes the loss by more than {margin:g}"
    seeds = changes[ALL_LOW]["seeds"]
    return None, f"cannot be told with {count_of(seeds, 'seed')}: no schedule was shown to stay within {margin:g}"


def _planned(
    task: Task, place: Place, recipe: LowerRecipe, budget: TimeBudget, shared: Mapping[str, list[Plain]]
) -> Plain:
    """Plan steps and seeds: those of parity if it has at least two pairs, else those for which there is time."""
    budget.require()
    times = {}
    for name in (ALL_LOW, ALL_HIGH):
        scheduled(task, place, recipe, name, 0, 1)
        times[name] = max(float(scheduled(task, place, recipe, name, 0, 3)["wall_s"]) / 3.0, 1e-4)
    low_s, high_s = times[ALL_LOW], times[ALL_HIGH]
    mixed_s = 2.0 * HIGH_RATIO * high_s + 2.0 * (1.0 - HIGH_RATIO) * low_s
    room_s = 0.8 * max(budget.left_s, 0.0)
    parity_runs = shared.get(ALL_HIGH, [])
    if len(parity_runs) > 1:
        steps = int(parity_runs[0]["steps"])
        return {"steps": steps, "seeds": len(parity_runs), "seed_s": mixed_s * steps, "shared": True}
    each_s = high_s + low_s + mixed_s
    seeds = int(min(max(room_s / (each_s * LEAST_STEPS), 1), SEEDS))
    steps = int(min(max(room_s / (each_s * seeds), LEAST_STEPS), task.steps[place.size]))
    return {"steps": steps, "seeds": seeds, "seed_s": each_s * steps, "shared": False}


def _change(rows: list[Plain], high: list[Plain], margin: float) -> Plain:
    """Test the paired differences of the loss from all high; a loss that is not finite counts as a diverged run."""
    return change_of([row["loss"] for row in rows], [row["loss"] for row in high], margin)


def _mean(rows: list[Plain]) -> float | None:
    losses = [row["loss"] for row in rows]
    return fmean(losses) if losses and None not in losses else None
