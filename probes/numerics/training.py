"""One model under training, with its layers in the requested precisions."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import nullcontext
from typing import Any

import torch

from planner.lazy import dataclass
from probes.numerics.lowering.recipes import EMULATED, LOWER, MIXED, REAL, LowerRecipe
from probes.numerics.lowering.switches import Switches
from probes.numerics.lowering.tried import why_not_real
from probes.numerics.tasks.interface import Job, Task

CLIP_NORM = 1.0
TAIL_RATIO = 0.2
"""Share of the training losses, at the end, whose mean replaces the held-out loss where a task has none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """The device and the size at which tasks are trained."""

    device: torch.device
    kind: str
    """`cpu` or `cuda`."""
    capability: tuple[int, int]
    size: str

    def mode_of(self, recipe: LowerRecipe) -> tuple[str, str | None]:
        """Return `real` or `emulated` for a recipe on this device, and the reason if it is emulated.

        A scaled recipe that the device should support is tried once on a small layer. In a run, each layer must also
        have sizes that the matrix units take.
        """
        mode, why = recipe.mode_on(self.kind, self.capability)
        if mode == REAL and recipe.autocast is None:
            why = why_not_real(recipe, self.device)
        return (REAL, None) if why is None else (EMULATED, why)

    def runs_for_real(self, recipe: LowerRecipe) -> bool:
        """Return whether the device runs a recipe for real."""
        return self.mode_of(recipe)[0] == REAL

    def ran(self, recipe: LowerRecipe, counts: Iterable[tuple[int, int]]) -> dict[str, Any]:
        """Return how the runs in a recipe were computed, as fields of a document.

        Args:
            recipe: the lower precision.
            counts: for each run, the layers that ran on the device's own units and the layers that were lowered.
        """
        listed = [count for count in counts if count[1]]
        mode, why = self.mode_of(recipe)
        real, lowered = min((row[0] for row in listed), default=0), max((row[1] for row in listed), default=0)
        if lowered and mode == REAL and real < lowered:
            mode = MIXED if real else EMULATED
            why = f"{lowered - real} of {lowered} layers have a kind or sizes that its matrix units do not take"
        return {"mode": mode, "why_emulated": why, "real_layers": real, "lowered_layers": lowered}


@dataclass(frozen=True, slots=True, kw_only=True)
class ScaleStep:
    """The loss scale of one step."""

    scale: float
    skipped: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Trained:
    """The outcome of a training run."""

    losses: tuple[float, ...]
    """Training loss of each step."""
    figures: dict[str, float]
    """Held-out figures at the end; NaN if the run diverged."""
    scales: tuple[ScaleStep, ...]
    """Loss scale of each step; empty without loss scaling."""
    wall_s: float
    complete: bool
    """Whether every requested step was taken in time; also True for a run that diverged."""
    real_layers: int
    """Layers that ran in a lower precision on the device's own units in every step."""
    lowered_layers: int
    """Layers that ran in a lower precision, for real or emulated."""


class Run:
    """One model under training."""

    def __init__(self, task: Task, seed: int, place: Place) -> None:
        """Make the model for a seed, with a switch on every layer.

        Args:
            task: what is trained.
            seed: determines the weights and the data.
            place: device and size.
        """
        torch.manual_seed(seed)
        self.place = place
        self.job: Job = task.make(seed, place.size, place.device)
        real = [recipe.id for recipe in LOWER if place.runs_for_real(recipe)]
        self.switches = Switches(self.job.model, place.kind, real)
        self.parameters = [parameter for parameter in self.job.model.parameters() if parameter.requires_grad]
        self.optimizer = self.job.optimizer(self.parameters)
        self.autocast: LowerRecipe | None = None
        self.scaler: Any = None
        self.step = 0

    def lower(self, recipe: LowerRecipe | None) -> None:
        """Turn the whole model to a recipe as a user would: an autocast region, or scaled linear layers. None: FP32."""
        self.autocast = recipe if recipe is not None and recipe.autocast is not None else None
        self.switches.region = self.autocast
        scaled = recipe is not None and recipe.autocast is None
        self.switches.turn(self.switches.policy(recipe) if recipe is not None and scaled else {})

    def loss(self, batch: Any) -> torch.Tensor:
        """Return the loss of a batch in the present precisions."""
        with self._region():
            return self.job.loss(self.job.model, batch)

    def one_step(self, before_update: Callable[[], object] | None = None) -> tuple[float, ScaleStep | None]:
        """Run forward, backward, clipping and update; the scaler skips the update if gradients are not finite.

        Args:
            before_update: called once the gradients of the step exist, unscaled.

        Returns:
            The loss, and the loss scale of the step; None without loss scaling.
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
        """Train for a number of steps, or until a deadline on the monotonic clock.

        Args:
            steps: largest number of steps.
            deadline: when to stop.
            each: called before each step with its number.
        """
        losses: list[float] = []
        scales: list[ScaleStep] = []
        broken = False
        self.switches.reset_counts()
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
            broken = not math.isfinite(value) and (scale is None or not scale.skipped)
            if broken:
                break  # the run cannot recover
        real, lowered = self.switches.counted()
        figures = self.figures(losses)
        if broken or not all(math.isfinite(figure) for figure in figures.values()):
            figures = dict.fromkeys(figures, math.nan)  # an accuracy from NaN logits is a number without meaning
        return Trained(
            losses=tuple(losses), figures=figures, scales=tuple(scales), wall_s=time.monotonic() - began,
            complete=broken or len(losses) == steps, real_layers=real, lowered_layers=lowered,
        )  # fmt: skip

    def figures(self, losses: list[float]) -> dict[str, float]:
        """Return the held-out figures, or the mean of the last training losses if there is no held-out data."""
        if self.job.held_out is None:
            tail = losses[-max(round(TAIL_RATIO * len(losses)), 1) :]
            return {"loss": sum(tail) / len(tail)}
        was = self.job.model.training
        self.job.model.eval()
        with self._region():
            figures = self.job.held_out(self.job.model)
        self.job.model.train(was)
        return figures

    def state(self) -> dict[str, Any]:
        """Return weights, optimizer, step and random states (dropout draws from them), to continue from here."""
        return {
            "model": {name: tensor.detach().clone() for name, tensor in self.job.model.state_dict().items()},
            "optimizer": _copied(self.optimizer.state_dict()),
            "step": self.step,
            "generator": torch.get_rng_state(),
            "device_generator": torch.cuda.get_rng_state(self.place.device) if self._on_gpu else None,
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go back to a saved state, in FP32 until layers are turned."""
        self.job.model.load_state_dict(state["model"])
        self.optimizer.load_state_dict(_copied(state["optimizer"]))
        self.step = int(state["step"])
        torch.set_rng_state(state["generator"])
        if state["device_generator"] is not None:
            torch.cuda.set_rng_state(state["device_generator"], self.place.device)
        self.scaler = None
        self.lower(None)

    @property
    def _on_gpu(self) -> bool:
        return self.place.kind == "cuda"

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
    """Return whether no gradient holds an infinity or NaN."""
    norms = [parameter.grad.abs().max() for parameter in parameters if parameter.grad is not None]
    return bool(torch.isfinite(torch.stack(norms)).all()) if norms else True


def dynamic_scaler(kind: str, *, init: float = 2.0**16, growth_interval: int = 2000) -> Any:
    """Return a `torch.amp.GradScaler` with its usual growth factor of 2 and back-off factor of one half."""
    return torch.amp.GradScaler(kind, init_scale=init, growth_interval=growth_interval)
