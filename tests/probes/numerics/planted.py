"""Tasks whose answers are known: gradients of a given size, and a layer that cannot stand a low precision.

And what instruments that work on them need: time that no machine uses up, and a keeper without a resume.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from probes.numerics.instruments.time import TimeBudget
from probes.numerics.tasks.interface import Job, Task
from probes.numerics.training import Place

PLACE = Place(device=torch.device("cpu"), kind="cpu", capability=(0, 0), size="small")


def ample() -> TimeBudget:
    """An hour: what is done is decided by the plan alone, however slow or busy the machine is."""
    return TimeBudget(end_s=time.monotonic() + 3600.0)


def keep_nothing(_key: str, compute: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """Computes each time."""
    return compute()


def task_of(gradient: float) -> Task:
    """One weight whose gradient is this number in every step."""

    def make(_seed: int, _size: str, _device: Any) -> Job:
        model = nn.Linear(1, 1, bias=False)
        return Job(
            model=model,
            batch=lambda _step: torch.ones(1, 1),
            loss=lambda network, x: gradient * network(x).float().sum(),
            optimizer=lambda parameters: torch.optim.SGD(parameters, lr=0.1),
        )

    return Task(id="planted", what="one weight", metrics=("loss",), make=make, steps={"small": 50, "large": 50})


def task_with_a_sensitive_layer() -> Task:
    """A regression whose third layer reads one huge constant column beside those that matter."""

    def make(seed: int, _size: str, _device: Any) -> Job:
        torch.manual_seed(seed)
        model = nn.Sequential()
        for number in range(4):
            if number == 2:
                model.add_module("huge", Huge(1e6))
            model.add_module(f"layer{number}", nn.Linear(32, 32))
            model.add_module(f"act{number}", nn.Tanh())
        with torch.no_grad():
            model.layer2.weight[:, 0] = 0.0
        model.layer2.weight.register_hook(lambda gradient: torch.cat([0.0 * gradient[:, :1], gradient[:, 1:]], dim=1))
        generator = torch.Generator().manual_seed(seed)
        x = torch.randn(512, 32, generator=generator)
        target = torch.randn(32, 32, generator=generator) / 32**0.5
        return Job(
            model=model,
            batch=lambda step: x[(step % 8) * 64 : (step % 8) * 64 + 64],
            loss=lambda network, rows: nn.functional.mse_loss(network(rows).float(), torch.tanh(rows @ target)),
            optimizer=lambda parameters: torch.optim.SGD(parameters, lr=0.2),
        )

    return Task(id="planted", what="a planted layer", metrics=("loss",), make=make, steps={"small": 60, "large": 60})


class Huge(nn.Module):
    """Puts a huge constant in the first column."""

    def __init__(self, value: float) -> None:
        super().__init__()
        self.value = value

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """`[rows, columns]` to the same."""
        return torch.cat([torch.full_like(x[:, :1], self.value), x[:, 1:]], dim=1)
