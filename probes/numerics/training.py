"""One model under training, whose layers are in the precisions that were asked for."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import torch

from probes.numerics.lowering.recipes import REAL, LowerRecipe
from probes.numerics.lowering.switches import Switches
from probes.numerics.tasks.interface import Job, Task

CLIP_NORM = 1.0
TAIL_RATIO = 0.2
"""Of the training losses, whose mean stands for a held-out loss where there is none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where and how large tasks are trained."""

    device: torch.device
    kind: str
    """`cpu` or `cuda`."""
    capability: tuple[int, int]
    size: str

    def mode_of(self, recipe: LowerRecipe) -> tuple[str, str | None]:
        """Whether a recipe runs for real here, and why not."""
        return recipe.mode_on(self.kind, self.capability)

    def runs_for_real(self, recipe: LowerRecipe) -> bool:
        """Whether it does."""
        return self.mode_of(recipe)[0] == REAL


@dataclass(frozen=True, slots=True, kw_only=True)
class ScaleStep:
    """The loss scale of one step."""

    scale: float
    skipped: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Trained:
    """What a run gave."""

    losses: tuple[float, ...]
    """Training loss of each step."""
    figures: dict[str, float]
    """Held-out figures at the end; NaN where the run broke down."""
    scales: tuple[ScaleStep, ...]
    """Of a run with loss scaling."""
    wall_s: float
    complete: bool
    """Whether every step that was asked for was taken in time."""


class Run:
    """One model under training."""

    def __init__(self, task: Task, seed: int, place: Place, real: tuple[str, ...] = ()) -> None:
        """Make the model of a seed, with a switch on every layer.

        Args:
            task: what is trained.
            seed: of weights and data.
            place: device and size.
            real: ids of recipes that run on the device's own matrix units.
        """
        torch.manual_seed(seed)
        self.place = place
        self.job: Job = task.make(seed, place.size, place.device)
        self.switches = Switches(self.job.model, place.kind, real)
        self.parameters = [parameter for parameter in self.job.model.parameters() if parameter.requires_grad]
        self.optimizer = self.job.optimizer(self.parameters)
        self.autocast: LowerRecipe | None = None
        self.scaler: Any = None
        self.step = 0

    def lower(self, recipe: LowerRecipe | None) -> None:
        """Turn the whole model to a recipe as a user would: a region of autocast, or its linear layers."""
        self.autocast = recipe if recipe is not None and recipe.autocast is not None else None
        scaled = recipe is not None and recipe.autocast is None
        self.switches.turn(self.switches.policy(recipe) if recipe is not None and scaled else {})

    def loss(self, batch: Any) -> torch.Tensor:
        """Loss of a batch in the present precisions."""
        with self._region():
            return self.job.loss(self.job.model, batch)

    def one_step(self, before_update: Callable[[], object] | None = None) -> tuple[float, ScaleStep | None]:
        """Forward, backward, clipping and update; a step whose gradients are not finite is skipped by the scaler.

        Args:
            before_update: called when the gradients of the step are there, unscaled.
        """
        value = self.loss(self.job.batch(self.step))
        self.step += 1
        scale = 1.0 if self.scaler is None else float(self.scaler.get_scale())
        (value if self.scaler is None else self.scaler.scale(value)).backward()
        if self.scaler is not None:
            self.scaler.unscale_(self.optimizer)
        if before_update is not None:
            before_update()
        skipped = self.scaler is not None and not finite_gradients(self.parameters)
        torch.nn.utils.clip_grad_norm_(self.parameters, CLIP_NORM)
        if self.scaler is None:
            self.optimizer.step()
        else:
            self.scaler.step(self.optimizer)
            self.scaler.update()
        self.optimizer.zero_grad(set_to_none=True)
        return float(value.detach()), None if self.scaler is None else ScaleStep(scale=scale, skipped=skipped)

    def train(self, steps: int, deadline: float = math.inf, each: Callable[[int], object] | None = None) -> Trained:
        """Train for some steps, or until the deadline by the monotonic clock.

        Args:
            steps: how many at most.
            deadline: when to stop.
            each: called before each step with its number.
        """
        losses: list[float] = []
        scales: list[ScaleStep] = []
        began = time.monotonic()
        for number in range(steps):
            if losses and time.monotonic() > deadline:
                break
            if each is not None:
                each(number)
            value, scale = self.one_step()
            losses.append(value)
            if scale is not None:
                scales.append(scale)
            if not math.isfinite(value) and scale is None:
                break  # it cannot come back
        figures = self.figures(losses)
        finished = len(losses) == steps or not math.isfinite(losses[-1])
        return Trained(
            losses=tuple(losses), figures=figures, scales=tuple(scales), wall_s=time.monotonic() - began,
            complete=finished,
        )  # fmt: skip

    def figures(self, losses: list[float]) -> dict[str, float]:
        """Held-out figures, or the mean of the last training losses."""
        if self.job.held_out is None:
            tail = losses[-max(round(TAIL_RATIO * len(losses)), 1) :]
            return {"loss": sum(tail) / len(tail)}
        was = self.job.model.training
        self.job.model.eval()
        with self._region():
            found = self.job.held_out(self.job.model)
        self.job.model.train(was)
        return found

    def state(self) -> dict[str, Any]:
        """Weights, optimizer and step, for runs that go on from here."""
        return {
            "model": {name: tensor.detach().clone() for name, tensor in self.job.model.state_dict().items()},
            "optimizer": _copied(self.optimizer.state_dict()),
            "step": self.step,
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from there, in FP32 until layers are turned."""
        self.job.model.load_state_dict(state["model"])
        self.optimizer.load_state_dict(_copied(state["optimizer"]))
        self.step = int(state["step"])
        self.autocast, self.scaler = None, None
        self.switches.turn({})

    def _region(self) -> Any:
        if self.autocast is None:
            return nullcontext()
        return torch.autocast(self.place.kind, dtype=getattr(torch, str(self.autocast.autocast)))


def _copied(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return value.detach().clone()
    if isinstance(value, dict):
        return {key: _copied(inner) for key, inner in value.items()}
    return [_copied(inner) for inner in value] if isinstance(value, list) else value


def finite_gradients(parameters: list[torch.nn.Parameter]) -> bool:
    """Whether no gradient holds an infinity or NaN."""
    norms = [parameter.grad.abs().max() for parameter in parameters if parameter.grad is not None]
    return bool(torch.isfinite(torch.stack(norms)).all()) if norms else True


def dynamic_scaler(kind: str, *, init: float = 2.0**16, growth_interval: int = 2000) -> Any:
    """`torch.amp.GradScaler` with its usual growth of 2 and back-off of one half."""
    return torch.amp.GradScaler(kind, init_scale=init, growth_interval=growth_interval)
