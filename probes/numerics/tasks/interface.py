"""Interface of a task, which makes a model, its batches and its loss from a seed; a job is one such model."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from planner.lazy import dataclass

if TYPE_CHECKING:
    import torch

SMALL, LARGE = "small", "large"
SIZES = (SMALL, LARGE)
"""For minutes on a CPU, and for minutes on a GPU."""
NATS, LOSS = "nats", "loss"
LOSS_UNITS = (NATS, LOSS)
"""Unit of a loss: a cross-entropy in natural logarithms, or a figure defined by the user."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One model ready to be trained. Equal seeds make equal jobs."""

    model: torch.nn.Module
    batch: Callable[[int], Any]
    """The batch of a step, on the device; the same step always has the same batch."""
    loss: Callable[[torch.nn.Module, Any], torch.Tensor]
    """Loss of a batch, as a scalar."""
    optimizer: Callable[[Any], torch.optim.Optimizer]
    """Makes the optimizer for the parameters."""
    held_out: Callable[[torch.nn.Module], dict[str, float]] | None = None
    """`loss`, and `accuracy` if there is one, on held-out data; None: the last training losses are used."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """A model and its data, to be trained."""

    id: str
    what: str
    """Model and data in one line."""
    metrics: tuple[str, ...]
    """Figures that parity can be judged by, `loss` first."""
    make: Callable[[int, str, torch.device], Job]
    """Makes a job from `(seed, size, device)`."""
    steps: dict[str, int]
    """Largest number of steps of a run, by size."""
    needs: str | None = None
    """Package that must be installed."""
    data: Callable[[], dict[str, object]] | None = None
    """Describes the source of its data, for the answer."""
    loss_unit: str = NATS
    """Unit of the loss: `nats` of a cross-entropy, or `loss` if unknown."""
    seeded_batches: bool | None = True
    """Whether each seed has its own batches; None: this has to be tested."""
