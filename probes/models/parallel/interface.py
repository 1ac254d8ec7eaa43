"""A strategy: how one step is spread over ranks. Points can be listed without torch, which only building imports."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from planner.measured.network.messages import StepMessage
from probes.device.clock import Mark
from probes.device.device import Device
from probes.models.parallel.case import Layout, ParallelCase
from probes.precisions.interface import PrecisionRecipe
from probes.ranks.team import Team

if TYPE_CHECKING:
    import torch

PLAIN = ("fp32", "tf32", "bf16-autocast")
"""Recipes that hold parameters in FP32 and convert nothing: they compose with every strategy."""


class RankStep(Protocol):
    """What one rank does in a training step; called by all ranks at once."""

    flags: tuple[str, ...]
    """Recipe flags for the record."""

    @property
    def held_bytes(self) -> float:
        """Bytes of tensors that it holds between steps."""

    def step(self, mark: Mark) -> torch.Tensor | None:
        """One step; the mean loss of this rank's tokens, None where another rank has it."""


class Strategy(Protocol):
    """One way of spreading a step over ranks."""

    @property
    def id(self) -> str:
        """For `setup.parallel`, and with `recompute` for probe ids."""

    @property
    def recompute(self) -> bool:
        """True: full activation checkpointing."""

    @property
    def recipes(self) -> tuple[str, ...]:
        """Ids of the recipes that it composes with."""

    @property
    def metered(self) -> bool:
        """True: its energy is measured."""

    @property
    def least_world(self) -> int:
        """Fewest ranks for which it differs from the others."""

    def layout(self, world: int) -> Layout:
        """Its degrees over so many ranks."""

    def unsupported(self, case: ParallelCase, world: int) -> str | None:
        """Why so many ranks cannot take the step, None where they can."""

    def messages(self, case: ParallelCase, world: int) -> tuple[StepMessage, ...]:
        """What a rank sends in a step, from the second on: the first also agrees on buckets and shapes."""

    def build(self, case: ParallelCase, recipe: PrecisionRecipe, team: Team, device: Device, seed: int) -> RankStep:
        """Make this rank's part; all ranks call it at once."""
