"""A task: a model, its batches and its loss, made anew from a seed; and a job, which is one such model."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from planner.lazy import dataclass

if TYPE_CHECKING:
    import torch

SMALL, LARGE = "small", "large"
SIZES = (SMALL, LARGE)
"""For minutes of a CPU, and for minutes of a GPU."""
NATS, LOSS = "nats", "loss"
LOSS_UNITS = (NATS, LOSS)
"""What a loss is in: a cross-entropy by the natural logarithm, or a figure of the user's own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One model ready to be trained. Equal seeds make equal jobs."""

    model: torch.nn.Module
    batch: Callable[[int], Any]
    """The batch of a step, on the device: the same for the same step."""
    loss: Callable[[torch.nn.Module, Any], torch.Tensor]
    """Loss of a batch, a scalar."""
    optimizer: Callable[[Any], torch.optim.Optimizer]
    """Makes the optimizer of parameters."""
    held_out: Callable[[torch.nn.Module], dict[str, float]] | None = None
    """`loss`, and `accuracy` where there is one, on data that is not trained on; None: the last training losses."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """What is trained."""

    id: str
    what: str
    """Model and data in one line."""
    metrics: tuple[str, ...]
    """Figures that parity can be judged by, `loss` first."""
    make: Callable[[int, str, torch.device], Job]
    """`(seed, size, device)`."""
    steps: dict[str, int]
    """Steps of a run for which there is time, by size."""
    needs: str | None = None
    """A package that must be there."""
    data: Callable[[], dict[str, object]] | None = None
    """Where its data come from, for the answer."""
    loss_unit: str = NATS
    """What the loss is in: `nats` of a cross-entropy, or `loss` where nobody knows."""
    seeded_batches: bool | None = True
    """Whether each seed has batches of its own; None: it has to be looked at."""
