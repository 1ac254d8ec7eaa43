"""Runs from warm starts that differ in the precisions of layers alone: one start for each seed.

What rounding does to a loss is chaotic: two seeds may rank layers in opposite orders. So every figure here is of
several seeds, and comes with an interval.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch

from planner.lazy import dataclass
from probes.numerics.instruments.time import Plain
from probes.numerics.lowering.recipes import LowerRecipe
from probes.numerics.lowering.switches import kinds_of
from probes.numerics.statistics.equivalence import compare
from probes.numerics.tasks.interface import Task
from probes.numerics.training import Place, Run, dynamic_scaler

FIRST_SCALE = 2.0**10
"""Of the loss in FP16 where only a gradient is looked at; it is taken out again."""


class Bench:
    """Runs of one seed from one warm start."""

    def __init__(self, task: Task, place: Place, recipe: LowerRecipe, *, warm_steps: int, seed: int = 0) -> None:
        """Train a little in FP32, where every run begins.

        Args:
            task: what is trained.
            place: where.
            recipe: the lower precision.
            warm_steps: in FP32.
            seed: of weights and data.
        """
        self.recipe = recipe
        self.run = Run(task, seed, place)
        if warm_steps:
            self.run.train(warm_steps)
        self.start = self.run.state()
        self._exact: list[torch.Tensor] | None = None

    def trained(self, layers: Sequence[str], steps: int) -> Plain:
        """Train with these layers lowered; the loss at the end, None where it is not finite."""
        self.from_start(layers)
        result = self.run.train(steps)
        loss = result.figures["loss"]
        return {
            "loss": loss if math.isfinite(loss) else None,
            "real_layers": result.real_layers, "lowered_layers": result.lowered_layers,
        }  # fmt: skip

    def gradient_error(self, layers: Sequence[str]) -> float | None:
        """Of the first gradient: the norm of its change over its norm. None where it is not finite."""
        if self._exact is None:
            self._exact = self._gradient(())
        pairs = zip(self._gradient(layers), self._exact, strict=True)
        change = sum(float((low - high).double().square().sum()) for low, high in pairs)
        norm = sum(float(exact.double().square().sum()) for exact in self._exact)
        error = math.sqrt(change / norm) if norm > 0 and math.isfinite(change) else math.inf
        return error if math.isfinite(error) else None

    def from_start(self, layers: Sequence[str]) -> None:
        """Go back to the start with these layers lowered."""
        self.run.restore(self.start)
        self.run.switches.turn(dict.fromkeys(layers, self.recipe))
        if self.recipe.loss_scaling and layers:
            self.run.scaler = dynamic_scaler(self.run.place.kind)

    def _gradient(self, layers: Sequence[str]) -> list[torch.Tensor]:
        """The gradient of the first batch."""
        self.from_start(layers)
        scale = FIRST_SCALE if self.recipe.loss_scaling and layers else 1.0
        (self.run.loss(self.run.job.batch(self.run.step)) * scale).backward()
        gradients = [
            torch.zeros_like(parameter) if parameter.grad is None else parameter.grad.detach() / scale
            for parameter in self.run.parameters
        ]
        self.run.optimizer.zero_grad(set_to_none=True)
        return gradients


class Benches:
    """A bench for each seed, made when it is first asked for."""

    def __init__(self, task: Task, place: Place, recipe: LowerRecipe) -> None:
        """Make the first one without a warm start, to see the layers and to take times.

        Args:
            task: what is trained.
            place: where.
            recipe: the lower precision.
        """
        self.recipe, self.place = recipe, place
        self.seeds, self.warm_steps = 0, 0
        self._task = task
        self._cold = Bench(task, place, recipe, warm_steps=0)
        self._warm: dict[int, Bench] = {}
        layers = self._cold.run.switches.layers
        self.kinds = kinds_of(layers)
        self.sizes = {name: sum(p.numel() for p in layer.parameters(recurse=False)) for name, layer in layers.items()}
        self.usual = tuple(self._cold.run.switches.policy(recipe))
        """Layers that the recipe lowers by itself."""

    def step_s(self) -> tuple[float, float]:
        """Seconds of a step with no layer lowered, and with all."""
        times = []
        for layers in ((), tuple(self.kinds)):
            self._cold.trained(layers, 1)  # the first step makes threads and kernels
            self._cold.from_start(layers)
            times.append(max(self._cold.run.train(2).wall_s / 2.0, 1e-4))
        return times[0], times[1]

    def start_from(self, seeds: int, warm_steps: int) -> None:
        """Settle how many there are, and how long each is trained in FP32 first."""
        self.seeds, self.warm_steps = seeds, warm_steps

    def of(self, seed: int) -> Bench:
        """The bench of a seed."""
        if seed not in self._warm:
            self._warm[seed] = Bench(self._task, self.place, self.recipe, warm_steps=self.warm_steps, seed=seed)
        return self._warm[seed]


@dataclass(frozen=True, slots=True, kw_only=True)
class Turned:
    """Training with these layers in the lower precision, over several seeds."""

    layers: tuple[str, ...]
    gradient_error_ratio: float | None
    """Of the first gradient, the mean over seeds: the norm of its change over its norm. None where not finite."""
    gradient_errors: tuple[float | None, ...]
    """Of each seed."""
    told_from_next: bool | None
    """Whether the error is above that of the next layer by more than the seeds differ (one-sided, 5 %); None: unknown,
    or there is no next one."""
    seeds: int
    """Runs whose loss is known; 0 where these layers were not trained."""
    loss_change: float | None
    """Mean change at the end against all layers in FP32, from the same starts on the same batches. None: not trained,
    or not finite."""
    loss_change_low: float | None
    """Lower end of its 90 % interval."""
    loss_change_high: float | None
    """Upper end."""
    diverged: int
    """Runs that ended without a finite loss."""


def change_of(losses: Sequence[float | None], base: Sequence[float | None], margin: float = 1.0) -> Plain:
    """Mean paired change of a loss with its interval, as fields of `Turned`.

    Args:
        losses: of each seed, None where not finite.
        base: the same in FP32; seeds where this is None are left out.
        margin: of the test, where its verdict is wanted.
    """
    pairs = [(low, high) for low, high in zip(losses, base, strict=False) if high is not None]
    comparison = compare([math.nan if low is None else low - high for low, high in pairs], margin)
    broken = comparison.diverged > 0
    return {
        "seeds": len(pairs), "diverged": comparison.diverged, "verdict": comparison.verdict,
        "loss_change": None if broken else comparison.difference_mid,
        "loss_change_low": comparison.difference_low, "loss_change_high": comparison.difference_high,
    }  # fmt: skip
