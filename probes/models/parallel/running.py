"""Steps as one rank runs them: forward, backward, clipping by the global norm, and AdamW."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
import torch.distributed as dist
from torch import nn

from probes.device.clock import Mark
from probes.models.parallel.decoder import Decoder, loss_of
from probes.precisions.interface import PrecisionRecipe
from probes.precisions.training import CLIP_NORM, Training, fused_adamw

Batch = tuple[torch.Tensor, torch.Tensor]
"""Tokens and targets."""


def prepare_training(decoder: Decoder, recipe: PrecisionRecipe, device_kind: str) -> Training:
    """Prepare a model for training, with its forward pass in the recipe's context."""
    training = Training(decoder, recipe, device_kind)
    decoder.region = training.region
    decoder.stream = getattr(torch, recipe.autocast) if recipe.autocast else None
    return training


class WholeStep:
    """A step in which every rank computes a loss, either its own or the same one."""

    def __init__(
        self,
        run: nn.Module,
        training: Training,
        batch: Batch,
        *,
        around: Callable[[], AbstractContextManager[object]] = nullcontext,
        buckets: bool = False,
    ) -> None:
        """Prepare the step.

        Args:
            run: the model as it is called.
            training: the training of the model.
            batch: the batch of this rank.
            around: context of the forward and backward pass.
            buckets: whether gradients are copied into buckets to be reduced.
        """
        self._run, self._training, self._batch, self._around = run, training, batch, around
        self._buckets = buckets
        self.flags = training.flags
        self._optimizer = fused_adamw(training.updated)

    @property
    def held_bytes(self) -> float:
        """See `RankStep.held_bytes`."""
        copies = self._training.updated if self._training.recipe.master_weights else []
        buckets = list(self._run.parameters()) if self._buckets else []
        return held_bytes([self._training.module], self._optimizer, self._batch, [*copies, *buckets])

    def step(self, mark: Mark) -> torch.Tensor:
        """See `RankStep.step`."""
        tokens, targets = self._batch
        with self._around():
            loss = loss_of(self._run(tokens), targets)
            mark("forward")
            self._training.backward(loss)
            mark("backward")
        self._training.update(self._optimizer)
        mark("optimizer")
        return loss.detach()


class PipelineStep:
    """A step of a pipeline, whose schedule interleaves forward and backward passes of micro-batches."""

    def __init__(self, schedule: Any, stages: Sequence[Training], batch: Batch, group: Any, *, ends: tuple[bool, bool]):
        """Prepare the step.

        Args:
            schedule: this rank's schedule from `torch.distributed.pipelining`.
            stages: the stages that this rank holds.
            batch: the batch of the pipeline.
            group: the ranks of the pipeline.
            ends: whether this rank holds the first and the last stage.
        """
        self._schedule, self._stages, self._batch, self._group, self._ends = schedule, stages, batch, group, ends
        self.buckets: list[torch.Tensor] = []
        self.flags = stages[0].flags
        self._parameters = [parameter for stage in stages for parameter in stage.updated]
        self._optimizer = fused_adamw(self._parameters)

    @property
    def held_bytes(self) -> float:
        """See `RankStep.held_bytes`."""
        return held_bytes([stage.module for stage in self._stages], self._optimizer, self._batch, self.buckets)

    def step(self, mark: Mark) -> torch.Tensor | None:
        """See `RankStep.step`."""
        tokens, targets = self._batch
        is_first, is_last = self._ends
        losses: list[torch.Tensor] = []
        given: dict[str, Any] = {"target": targets, "losses": losses} if is_last else {}
        self._schedule.step(*((tokens,) if is_first else ()), **given)
        mark("backward")
        clip_across(self._parameters, self._group)
        self._optimizer.step()
        self._optimizer.zero_grad(set_to_none=True)
        mark("optimizer")
        return torch.stack([loss.detach() for loss in losses]).mean() if is_last else None


def clip_across(parameters: Sequence[torch.Tensor], group: Any) -> None:
    """Clip gradients by their norm over all ranks of a group, where each rank has different parameters."""
    gradients = [parameter.grad for parameter in parameters if parameter.grad is not None]
    squared = nn.utils.get_total_norm(gradients) ** 2
    dist.all_reduce(squared, group=group)
    nn.utils.clip_grads_with_norm_(parameters, CLIP_NORM, squared.sqrt())


def held_bytes(
    modules: Iterable[nn.Module],
    optimizer: torch.optim.Optimizer,
    batch: Batch,
    others: Iterable[torch.Tensor],
) -> float:
    """Return the bytes that a rank holds between steps: parameters, buffers, optimizer states, batch, and `others`."""
    states = [value for state in optimizer.state.values() for value in state.values() if hasattr(value, "nbytes")]
    held = [tensor for module in modules for tensor in (*module.parameters(), *module.buffers())]
    return float(sum(_local(tensor).nbytes for tensor in (*held, *states, *batch, *others)))


def _local(tensor: Any) -> torch.Tensor:
    """Return the local part of a distributed tensor; any other tensor as it is."""
    return tensor.to_local() if hasattr(tensor, "to_local") else tensor


def share(batch: Batch, part: int, parts: int) -> Batch:
    """Return one part of the sequences of a batch."""
    tokens, targets = (tensor.chunk(parts)[part] for tensor in batch)
    return tokens, targets
