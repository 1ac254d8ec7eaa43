"""Runs from warm starts that differ only in the precisions of layers, with one start per seed.

The effect of rounding on a loss is chaotic: two seeds may rank layers in opposite orders. Every figure here therefore
comes from several seeds and has an interval.
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
"""Loss scale in FP16 when only a gradient is evaluated; the gradient is divided by it again."""


class WarmStart:
    """The warm start of one seed, and runs from it."""

    def __init__(self, task: Task, place: Place, recipe: LowerRecipe, *, warm_steps: int, seed: int = 0) -> None:
        """Train a little in FP32, to the start of every run.

        Args:
            task: what is trained.
            place: device and size.
            recipe: the lower precision.
            warm_steps: number of FP32 steps.
            seed: determines the weights and the data.
        """
        self.recipe = recipe
        self.run = Run(task, seed, place)
        if warm_steps:
            self.run.train(warm_steps)
        self.start = self.run.state()
        self._exact: list[torch.Tensor] | None = None

    def train(self, layers: Sequence[str], steps: int) -> Plain:
        """Train with these layers lowered; return the final loss, None if it is not finite, and counts of layers."""
        self.restore(layers)
        result = self.run.train(steps)
        loss = result.figures["loss"]
        return {
            "loss": loss if math.isfinite(loss) else None,
            "real_layers": result.real_layers, "lowered_layers": result.lowered_layers,
        }  # fmt: skip

    def gradient_error(self, layers: Sequence[str]) -> float | None:
        """Return the norm of the change of the first gradient over its norm; None if it is not finite."""
        if self._exact is None:
            self._exact = self._gradient(())
        pairs = zip(self._gradient(layers), self._exact, strict=True)
        change = sum(float((low - high).double().square().sum()) for low, high in pairs)
        norm = sum(float(exact.double().square().sum()) for exact in self._exact)
        error = math.sqrt(change / norm) if norm > 0 and math.isfinite(change) else math.inf
        return error if math.isfinite(error) else None

    def restore(self, layers: Sequence[str]) -> None:
        """Go back to the start and lower these layers."""
        self.run.restore(self.start)
        self.run.switches.turn(dict.fromkeys(layers, self.recipe))
        if self.recipe.loss_scaling and layers:
            self.run.scaler = dynamic_scaler(self.run.place.kind)

    def _gradient(self, layers: Sequence[str]) -> list[torch.Tensor]:
        """Return the gradient of the first batch."""
        self.restore(layers)
        scale = FIRST_SCALE if self.recipe.loss_scaling and layers else 1.0
        (self.run.loss(self.run.job.batch(self.run.step)) * scale).backward()
        gradients = [
            torch.zeros_like(parameter) if parameter.grad is None else parameter.grad.detach() / scale
            for parameter in self.run.parameters
        ]
        self.run.optimizer.zero_grad(set_to_none=True)
        return gradients


class WarmStarts:
    """The warm starts of all seeds, each made on first use."""

    def __init__(self, task: Task, place: Place, recipe: LowerRecipe) -> None:
        """Make a start without training, to inspect the layers and to time steps.

        Args:
            task: what is trained.
            place: device and size.
            recipe: the lower precision.
        """
        self.recipe, self.place = recipe, place
        self.seeds, self.warm_steps = 0, 0
        self._task = task
        self._untrained = WarmStart(task, place, recipe, warm_steps=0)
        self._warm: dict[int, WarmStart] = {}
        layers = self._untrained.run.switches.layers
        self.kinds = kinds_of(layers)
        self.sizes = {name: sum(p.numel() for p in layer.parameters(recurse=False)) for name, layer in layers.items()}
        self.recipe_policy = tuple(self._untrained.run.switches.policy(recipe))
        """Layers that the recipe lowers by itself."""

    def step_s(self) -> tuple[float, float]:
        """Return the seconds of a step with no layer lowered, and with all layers lowered."""
        times = []
        for layers in ((), tuple(self.kinds)):
            self._untrained.train(layers, 1)  # the first step starts threads and loads kernels
            self._untrained.restore(layers)
            times.append(max(self._untrained.run.train(2).wall_s / 2.0, 1e-4))
        return times[0], times[1]

    def start_from(self, seeds: int, warm_steps: int) -> None:
        """Set the number of seeds, and the number of FP32 steps before each start."""
        self.seeds, self.warm_steps = seeds, warm_steps

    def of(self, seed: int) -> WarmStart:
        """Return the warm start of a seed."""
        if seed not in self._warm:
            self._warm[seed] = WarmStart(self._task, self.place, self.recipe, warm_steps=self.warm_steps, seed=seed)
        return self._warm[seed]


@dataclass(frozen=True, slots=True, kw_only=True)
class Turned:
    """Training with these layers in the lower precision, over several seeds."""

    layers: tuple[str, ...]
    gradient_error_ratio: float | None
    """Mean over seeds of the norm of the change of the first gradient over its norm. None: not finite."""
    gradient_errors: tuple[float | None, ...]
    """Ratio of each seed; `gradient_error_ratio` is their mean."""
    told_from_next: bool | None
    """Whether the error exceeds that of the next layer by more than the seeds differ (one-sided, 5%). None: unknown,
    or there is no next layer."""
    seeds: int
    """Paired runs whose FP32 loss is finite, diverged ones included; 0 if these layers were not trained."""
    loss_change: float | None
    """Mean change of the final loss against all layers in FP32, from the same starts on the same batches. None: not
    trained, or not finite."""
    loss_change_low: float | None
    """Lower end of its 90% interval."""
    loss_change_high: float | None
    """Upper end of the interval."""
    diverged: int
    """Runs that ended without a finite loss."""


def change_of(losses: Sequence[float | None], base: Sequence[float | None], margin: float = 1.0) -> Plain:
    """Return the mean paired change of a loss with its interval: fields of `Turned`, and `verdict`.

    Args:
        losses: loss of each seed; None if not finite.
        base: FP32 loss of each seed; seeds where it is None are left out.
        margin: margin of the test, if its verdict is wanted.
    """
    pairs = [(low, high) for low, high in zip(losses, base, strict=False) if high is not None]
    comparison = compare([math.nan if low is None else low - high for low, high in pairs], margin)
    broken = comparison.diverged > 0
    return {
        "seeds": len(pairs), "diverged": comparison.diverged, "verdict": comparison.verdict,
        "loss_change": None if broken else comparison.difference_mid,
        "loss_change_low": comparison.difference_low, "loss_change_high": comparison.difference_high,
    }  # fmt: skip
