"""Which layers suffer: one at a time is turned to the lower precision, and what that costs is measured.

Where there is no time for every layer, groups of neighbours are turned together, and the group that costs most is
halved again and again.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

import torch

from probes.numerics.instruments.time import Keep, OutOfTimeError, Plain, Slice
from probes.numerics.lowering.recipes import LowerRecipe
from probes.numerics.lowering.switches import kinds_of
from probes.numerics.tasks.interface import Task
from probes.numerics.training import Place, Run, dynamic_scaler

WARM_STEPS, LEAST_STEPS, MOST_STEPS = 30, 8, 200
GROUPS_AT_FIRST = 4
PROBES_ASIDE = 8
"""Runs beside the layers' own: FP32, all layers, the recipe's own choice, and the search for a policy."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Turned:
    """Training with these layers in the lower precision."""

    layers: tuple[str, ...]
    loss: float | None
    """At the end; None where it is not finite."""
    loss_change: float | None
    """Against all layers in FP32, from the same start on the same batches."""
    gradient_error_ratio: float | None
    """Of the first gradient: the norm of its change over its norm. None where it is not finite."""


class Bench:
    """Runs from one warm start that differ in the precisions of layers alone."""

    def __init__(self, task: Task, place: Place, recipe: LowerRecipe, *, warm_steps: int = WARM_STEPS) -> None:
        """Train a little in FP32, where every run begins.

        Args:
            task: what is trained.
            place: where.
            recipe: the lower precision.
            warm_steps: in FP32.
        """
        real = (recipe.id,) if place.runs_for_real(recipe) else ()
        self.recipe = recipe
        self.run = Run(task, 0, place, real)
        self.run.train(warm_steps)
        self.start = self.run.state()
        self.kinds = kinds_of(self.run.switches.layers)
        self._exact: list[torch.Tensor] | None = None

    def turned(self, layers: Sequence[str], steps: int, base_loss: float | None) -> Turned:
        """Train with these layers lowered."""
        error = self._gradient_error(layers)
        self._from_start(layers)
        result = self.run.train(steps)
        loss = result.figures["loss"] if math.isfinite(result.figures["loss"]) else None
        change = None if loss is None or base_loss is None else loss - base_loss
        return Turned(layers=tuple(layers), loss=loss, loss_change=change, gradient_error_ratio=error)

    def _from_start(self, layers: Sequence[str]) -> None:
        self.run.restore(self.start)
        self.run.switches.turn(dict.fromkeys(layers, self.recipe))
        if self.recipe.loss_scaling and layers:
            self.run.scaler = dynamic_scaler(self.run.place.kind)

    def _gradient(self, layers: Sequence[str]) -> list[torch.Tensor]:
        """The gradient of the first batch; FP16 gets a scale that is taken out again, where that does not overflow."""
        self._from_start(layers)
        scale = 2.0**10 if self.recipe.loss_scaling and layers else 1.0
        (self.run.loss(self.run.job.batch(self.run.step)) * scale).backward()
        gradients = [
            torch.zeros_like(parameter) if parameter.grad is None else parameter.grad.detach() / scale
            for parameter in self.run.parameters
        ]
        self.run.optimizer.zero_grad(set_to_none=True)
        return gradients

    def _gradient_error(self, layers: Sequence[str]) -> float | None:
        if not layers:
            return 0.0
        if self._exact is None:
            self._exact = self._gradient(())
        pairs = zip(self._gradient(layers), self._exact, strict=True)
        change = sum(float((low - high).double().square().sum()) for low, high in pairs)
        norm = sum(float(exact.double().square().sum()) for exact in self._exact)
        error = math.sqrt(change / norm) if norm > 0 and math.isfinite(change) else math.inf
        return error if math.isfinite(error) else None


Measure = Callable[[Sequence[str]], Turned]


def damage(turned: Turned | Mapping[str, Any]) -> float:
    """What to rank by: the change of the loss; infinite where training broke down."""
    change = turned.loss_change if isinstance(turned, Turned) else turned["loss_change"]
    return math.inf if change is None else float(change)


def one_at_a_time(layers: Sequence[str], measure: Measure) -> list[Turned]:
    """Every layer by itself, as long as there is time."""
    found = []
    for layer in layers:
        try:
            found.append(measure((layer,)))
        except OutOfTimeError:
            break
    return found


def by_halving(layers: Sequence[str], measure: Measure) -> list[Turned]:
    """Groups of neighbours, of which the worst is halved until single layers are left or the time is up.

    Args:
        layers: in the order of the model.
        measure: may raise `OutOfTimeError`.

    Returns:
        Single layers and the groups that were not split any further.
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


def sensitivity(task: Task, place: Place, recipe: LowerRecipe, until: Slice, keep: Keep) -> tuple[Plain, Bench | None]:
    """The layers of a task by what lowering them costs, as a plain document, and the bench for what follows."""
    mode, why = place.mode_of(recipe)
    head = {"precision": recipe.id, "mode": mode, "why_emulated": why}
    empty = {"steps": 0, "method": "none", "layers": [], "kinds": {}, "base_loss": None, "all_lowered": None}
    if until.left_s <= 0:
        return {**head, **empty, "cut_short": ["sensitivity: no time was left"]}, None
    bench = Bench(task, place, recipe)
    names = list(bench.kinds)
    plan = keep("plan", lambda: _planned(bench, names, until.left_s))
    steps = int(plan["steps"])
    base = keep("base", lambda: asdict(bench.turned((), steps, None)))

    def measure(layers: Sequence[str]) -> Turned:
        def work() -> Plain:
            until.must_last(float(plan["run_s"]))
            return asdict(bench.turned(layers, steps, base["loss"]))

        row = keep("+".join(layers), work)
        return Turned(**{**row, "layers": tuple(row["layers"])})

    everything = keep("all", partial(_plain, bench, names, steps, base["loss"]))
    single = plan["method"] == "one at a time"
    found = one_at_a_time(names, measure) if single else by_halving(names, measure)
    reached = sum(len(row.layers) for row in found if len(row.layers) == 1)
    ranked = sorted(found, key=damage, reverse=True)
    return {
        **head, "steps": steps, "method": plan["method"], "base_loss": base["loss"], "all_lowered": everything,
        "kinds": bench.kinds,
        "layers": [{**asdict(row), "kinds": sorted({bench.kinds[layer] for layer in row.layers})} for row in ranked],
        "cut_short": [] if reached == len(names) else [f"{len(names) - reached} of {len(names)} layers by themselves"],
    }, bench  # fmt: skip


def _plain(bench: Bench, layers: Sequence[str], steps: int, base_loss: float | None) -> Plain:
    return asdict(bench.turned(layers, steps, base_loss))


def _planned(bench: Bench, names: Sequence[str], left_s: float) -> Plain:
    """Steps of each run and the way of looking, by the time of two steps with everything lowered."""
    bench.turned(names, 1, None)
    bench._from_start(names)
    each_s = max(bench.run.train(2).wall_s / 2.0, 1e-4)
    runs = len(names) + PROBES_ASIDE
    steps = int(0.8 * left_s / (runs * each_s)) - 2  # two steps' worth is the gradient
    if steps >= LEAST_STEPS:
        steps = min(steps, MOST_STEPS)
        return {"method": "one at a time", "steps": steps, "run_s": (steps + 2) * each_s}
    return {"method": "groups, halved", "steps": LEAST_STEPS, "run_s": (LEAST_STEPS + 2) * each_s}
