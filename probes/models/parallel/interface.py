"""A strategy: how one step is spread over ranks. Listing points does not import torch; building a step does."""

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
"""Recipes that hold parameters in FP32 and convert nothing, so that they combine with every strategy."""


class RankStep(Protocol):
    """The work of one rank in a training step; called by all ranks at once."""

    flags: tuple[str, ...]
    """Recipe flags for the record."""

    @property
    def held_bytes(self) -> float:
        """Bytes of the tensors that this rank holds between steps."""

    def step(self, mark: Mark) -> torch.Tensor | None:
        """Run one step; return the mean loss of this rank's tokens, None if another rank has it."""


class Strategy(Protocol):
    """One way to spread a step over ranks."""

    @property
    def id(self) -> str:
        """Id for `setup.parallel` and, with `recompute`, for probe ids."""

    @property
    def recompute(self) -> bool:
        """Whether it uses full activation checkpointing."""

    @property
    def recipes(self) -> tuple[str, ...]:
        """Ids of the recipes that the strategy combines with."""

    @property
    def metered(self) -> bool:
        """Whether its energy is measured."""

    @property
    def least_world(self) -> int:
        """Least number of ranks with which it differs from the other strategies."""

    def layout(self, world: int) -> Layout:
        """Return its degrees of parallelism over a number of ranks."""

    def unsupported(self, case: ParallelCase, world: int) -> str | None:
        """Return why a number of ranks cannot run the step, None if it can."""

    def messages(self, case: ParallelCase, world: int) -> tuple[StepMessage, ...]:
        """Return what a rank sends in each step but the first, which also agrees on buckets and shapes."""

    def build(self, case: ParallelCase, recipe: PrecisionRecipe, team: Team, device: Device, seed: int) -> RankStep:
        """Build this rank's part; all ranks call this at once."""
