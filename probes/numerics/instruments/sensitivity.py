"""Which layers suffer: one layer at a time is turned to the lower precision, and the cost of that is measured.

Layers are ranked by the change that lowering each makes to the first gradient, which differs little from seed to seed.
The change of the loss is mostly chaos, so it is measured for the worst layers only, with an interval. If there is no
time for every layer, groups of neighbouring layers are lowered together, and the worst group is halved repeatedly.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from functools import partial
from itertools import pairwise
from statistics import fmean
from typing import Any

from probes.numerics.instruments.time import Keep, OutOfTimeError, Plain, TimeBudget, missing
from probes.numerics.instruments.warm_starts import Turned, WarmStarts, change_of
from probes.numerics.lowering.recipes import LowerRecipe
from probes.numerics.statistics.equivalence import compare
from probes.numerics.tasks.interface import Task
from probes.numerics.training import Place

LEAST_SEEDS = 3
WARM_STEPS, LEAST_WARM_STEPS = 30, 5
LEAST_STEPS, MOST_STEPS = 8, 200
GROUPS_AT_FIRST = 4
EVERY = 10**9
SPLITS = ((5, EVERY, 50), (5, 4, 30), (3, 4, 20), (3, 2, 16), (3, 0, LEAST_STEPS))
"""Seeds, number of worst layers whose loss is measured, and least steps of a run. The first row that fits is used."""
GRADIENTS_RATIO = 0.4
"""Share of the time that the gradients of all layers may take; if they take more, groups are measured."""
NOT_REPEATABLE = 1e-4
"""Relative change of a gradient between two FP32 runs above which the reader is warned."""

Measure = Callable[[Sequence[str]], Turned]


def damage(turned: Turned | Mapping[str, Any]) -> float:
    """Return the change of the first gradient, by which layers are ranked; infinite if it is not finite."""
    error = turned.gradient_error_ratio if isinstance(turned, Turned) else turned["gradient_error_ratio"]
    return math.inf if error is None else float(error)


def errors_only(layers: Sequence[str], errors: Sequence[float | None]) -> Turned:
    """Return the row of layers whose gradient errors are known but which were not trained."""
    finite = [error for error in errors if error is not None]
    return Turned(
        layers=tuple(layers), gradient_errors=tuple(errors),
        gradient_error_ratio=fmean(finite) if finite and len(finite) == len(errors) else None, told_from_next=None,
        seeds=0, loss_change=None, loss_change_low=None, loss_change_high=None, diverged=0,
    )  # fmt: skip


def one_at_a_time(layers: Sequence[str], measure: Measure) -> list[Turned]:
    """Measure every layer by itself, while there is time."""
    turned = []
    for layer in layers:
        try:
            turned.append(measure((layer,)))
        except OutOfTimeError:
            break
    return turned


def by_halving(layers: Sequence[str], measure: Measure) -> list[Turned]:
    """Measure groups of neighbouring layers and halve the worst one, until single layers remain or the time is up.

    Args:
        layers: in the order of the model.
        measure: may raise `OutOfTimeError`.

    Returns:
        Single layers, and the groups that were not split further.
    """
    size = max(math.ceil(len(layers) / GROUPS_AT_FIRST), 1)
    waiting: list[Turned] = []
    try:
        for at in range(0, len(layers), size):
            waiting.append(measure(layers[at : at + size]))
        while any(len(group.layers) > 1 for group in waiting):
            worst = max((group for group in waiting if len(group.layers) > 1), key=damage)
            middle = len(worst.layers) // 2
            halves = [measure(worst.layers[:middle]), measure(worst.layers[middle:])]
            waiting.remove(worst)
            waiting += halves
    except OutOfTimeError:
        pass
    return waiting


def ranked(turned: Sequence[Turned]) -> list[Turned]:
    """Sort from the worst to the mildest, and mark whether each differs clearly from the next."""
    rows = sorted(turned, key=damage, reverse=True)
    told = [_told(row, after) for row, after in pairwise(rows)]
    return [replace(row, told_from_next=apart) for row, apart in zip(rows, [*told, None], strict=False)]


def _told(row: Turned, after: Turned) -> bool | None:
    """Return whether the log errors of two layers, paired by seed, differ by more than their spread; None: unknown."""
    if row.gradient_error_ratio is None or after.gradient_error_ratio is None:
        return (row.gradient_error_ratio is None) != (after.gradient_error_ratio is None)
    pairs = list(zip(row.gradient_errors, after.gradient_errors, strict=False))
    if any(not worse or not milder for worse, milder in pairs):
        return None
    low = compare([math.log(float(worse or 1) / float(milder or 1)) for worse, milder in pairs], 1.0).difference_low
    return None if low is None else low > 0.0


def sensitivity(
    task: Task, place: Place, recipe: LowerRecipe, budget: TimeBudget, keep: Keep
) -> tuple[Plain, WarmStarts | None]:
    """Rank a task's layers by the cost of lowering them; return a plain document, and warm starts for the policy."""
    if budget.left_s <= 0:
        return empty_answer(place, recipe, ["no time was left"]), None
    warm_starts = WarmStarts(task, place, recipe)
    kinds = warm_starts.kinds
    names = list(kinds)
    plan = keep("plan", lambda: planned(*warm_starts.step_s(), len(names), budget.left_s))
    warm_starts.start_from(int(plan["seeds"]), int(plan["warm_steps"]))
    gradients_budget = budget.portion(0.5)

    def measure(layers: Sequence[str]) -> Turned:
        def work() -> Plain:
            gradients_budget.require()
            return {"errors": [warm_starts.of(seed).gradient_error(layers) for seed in range(warm_starts.seeds)]}

        return errors_only(layers, keep("gradient/" + "+".join(layers), work)["errors"])

    single = plan["method"] == "one at a time"
    rows = ranked(one_at_a_time(names, measure) if single else by_halving(names, measure))
    if not rows:
        return empty_answer(place, recipe, ["time ran out before the first layer"]), None
    repeat = keep("repeat", lambda: {"error": warm_starts.of(0).gradient_error(())})["error"]
    steps = int(plan["steps"])
    runs = LoweredRuns(warm_starts, steps, budget, keep, float(plan["run_s"]))
    base, everything = runs.of(()), runs.of(names)
    rows = [
        replace(row, **runs.change(row.layers)) if at < int(plan["trained"]) else row for at, row in enumerate(rows)
    ]  # fmt: skip
    reached = sum(len(row.layers) for row in rows if len(row.layers) == 1)
    cut = [] if reached == len(names) else [f"{len(names) - reached} of {len(names)} layers not tried by themselves"]
    if len(everything) < warm_starts.seeds:
        cut.append(missing(warm_starts.seeds - len(everything), warm_starts.seeds, "seeds"))
    counts = [(row["real_layers"], row["lowered_layers"]) for row in everything]
    return {
        "precision": recipe.id, **place.ran(recipe, counts),
        "baseline": "fp32", "start": "warm", "warm_steps": warm_starts.warm_steps, "steps": steps,
        "seeds": min(len(base), len(everything)), "method": plan["method"], "ranked_by": "gradient_error_ratio",
        "base_loss": _mean([row["loss"] for row in base]),
        "all_lowered": asdict(replace(errors_only(names, ()), **runs.change(names))),
        "kinds": kinds, "repeat_error_ratio": repeat,
        "layers": [{**asdict(row), "kinds": sorted({kinds[layer] for layer in row.layers})} for row in rows],
        "why_not_applied": None, "words": words(rows), "notes": notes(repeat), "cut_short": cut,
    }, warm_starts  # fmt: skip


class LoweredRuns:
    """Losses of runs with some layers lowered, seed by seed; each is stored when it is finished."""

    def __init__(self, warm_starts: WarmStarts, steps: int, budget: TimeBudget, keep: Keep, run_s: float) -> None:
        """Prepare the runs; nothing is trained yet.

        Args:
            warm_starts: the warm starts.
            steps: steps of a run.
            budget: time for the runs.
            keep: stores each run.
            run_s: seconds that a run takes.
        """
        self._warm_starts, self._steps, self._budget, self._keep, self._run_s = warm_starts, steps, budget, keep, run_s
        self._known: dict[tuple[str, ...], list[Plain]] = {}

    def of(self, layers: Sequence[str]) -> list[Plain]:
        """Return one run per seed with these layers lowered, as far as there is time."""
        key = tuple(layers)
        rows = self._known.setdefault(key, [])
        try:
            for seed in range(len(rows), self._warm_starts.seeds):
                name = "all" if len(key) == len(self._warm_starts.kinds) else "+".join(key) if key else "fp32"
                rows.append(self._keep(f"loss/{name}/{seed}", partial(self._trained, key, seed)))
        except OutOfTimeError:
            pass
        return rows

    def change(self, layers: Sequence[str]) -> Plain:
        """Return the loss change of these layers against FP32, as fields of `Turned`."""
        losses, base = ([row["loss"] for row in self.of(those)] for those in (layers, ()))
        change = change_of(losses, base)
        del change["verdict"]
        return change

    def _trained(self, layers: tuple[str, ...], seed: int) -> Plain:
        self._budget.require(self._run_s)
        return self._warm_starts.of(seed).train(layers, self._steps)


def words(rows: Sequence[Turned]) -> str:
    """Return in words what the order and the losses show."""
    if len(rows) < 2:
        order = "there is one layer"
    else:
        tied = next((at for at, row in enumerate(rows, start=1) if row.told_from_next), len(rows))
        first = ", ".join(rows[0].layers)
        order = f"{first} suffers most" if tied == 1 else f"the worst {tied} of {len(rows)} cannot be told apart"
    trained = [row for row in rows if row.seeds or row.diverged]
    hurt = [
        row for row in trained if row.diverged or (row.loss_change_low is not None and row.loss_change_low > 0.0)
    ]  # fmt: skip
    if not trained:
        return f"{order}; what one layer does to the loss was not measured"
    if not hurt:
        return f"{order}; what one layer does to the loss cannot be told from chance"
    return f"{order}; lowering one layer alone raises the loss: {', '.join('+'.join(row.layers) for row in hurt)}"


def notes(repeat: float | None) -> list[str]:
    """Return a warning if FP32 does not repeat itself."""
    if repeat is not None and repeat <= NOT_REPEATABLE:
        return []
    change = "is not finite" if repeat is None else f"changes by {repeat:.2g} of itself"
    return [f"the gradient of FP32 {change} from one run to the next: errors below that say nothing of a precision"]


def planned(high_s: float, low_s: float, layers: int, left_s: float) -> Plain:
    """Choose the seeds, the steps and the method for which there is time.

    Args:
        high_s: seconds of a step with no layer lowered.
        low_s: seconds of a step with all layers lowered.
        layers: number of layers.
        left_s: time for everything.
    """
    step_s = 0.5 * (high_s + low_s)
    for seeds, most_trained, least in SPLITS:
        trained = min(most_trained, layers)
        warm = int(min(max(0.15 * left_s / (seeds * high_s), LEAST_WARM_STEPS), WARM_STEPS))
        gradients_s = seeds * (layers + 2) * step_s
        single = gradients_s <= GRADIENTS_RATIO * left_s
        room_s = 0.9 * left_s - seeds * warm * high_s - min(gradients_s, GRADIENTS_RATIO * left_s)
        steps = int(room_s / (seeds * (high_s + low_s + trained * step_s)))
        if steps >= least and single:
            break
    steps = min(max(steps, LEAST_STEPS), MOST_STEPS)
    return {
        "method": "one at a time" if single else "groups, halved", "seeds": max(seeds, LEAST_SEEDS),
        "warm_steps": warm, "steps": steps, "trained": trained, "run_s": steps * low_s,
    }  # fmt: skip


def empty_answer(place: Place, recipe: LowerRecipe, cut: list[str], why_not_applied: str | None = None) -> Plain:
    """Return the answer when no layer was measured.

    Args:
        place: device and size.
        recipe: the lower precision.
        cut: the entries of `cut_short`.
        why_not_applied: why the recipe reaches nothing of the model; None: it does, or this was not checked.
    """
    return {
        "precision": recipe.id, **place.ran(recipe, ()), "baseline": "fp32", "start": "warm", "warm_steps": 0,
        "steps": 0, "seeds": 0, "method": "none", "ranked_by": "gradient_error_ratio", "base_loss": None,
        "all_lowered": None, "kinds": {}, "repeat_error_ratio": None, "layers": [],
        "words": f"not applied: {why_not_applied}" if why_not_applied else f"unknown: {cut[0]}",
        "why_not_applied": why_not_applied,
        "notes": [], "cut_short": cut,
    }  # fmt: skip


def _mean(values: Sequence[float | None]) -> float | None:
    finite = [value for value in values if value is not None]
    return fmean(finite) if finite and len(finite) == len(values) else None
