"""A task of the user's own: `--task module:factory`.

The factory is called with the seed of a run (as `seed=`, if it accepts that) after torch's generators are set to it. It
returns `(model, batches, loss)` or `(model, batches, loss, optimizer)`:

- `model`: a `torch.nn.Module`;
- `batches`: a list, a `DataLoader` or another iterable, whose batches are repeated in order, or a function of the step;
- `loss`: a function `(model, batch)` that returns a scalar;
- `optimizer`: a function of the parameters; the default is AdamW with a learning rate of 1e-3.

The weights must be FP32, because lower precisions are compared with FP32. The unit of the loss cannot be inferred: a
factory with the attribute `loss_unit = "nats"` declares that its loss is a cross-entropy.
"""

from __future__ import annotations

import importlib
import inspect
import os
import sys
from collections.abc import Callable, Mapping
from typing import Any

from planner.errors import UsageError
from probes.numerics.tasks.interface import LARGE, LOSS, NATS, SMALL, Job, Task

EXPECTED = "return (model, batches, loss) or (model, batches, loss, optimizer)"
RATE = 1e-3


def own_task(name: str) -> Task:
    """Return the task that `module:factory` names; modules of the working directory are found.

    Raises:
        UsageError: there is no such module or factory, or importing it failed.
    """
    module_name, _, attribute = name.partition(":")
    if not module_name or not attribute:
        raise UsageError(f"--task: `{name}` is not `module:factory`", hint="for example `--task mine:make`")
    if (directory := os.getcwd()) not in sys.path:
        sys.path.insert(0, directory)
    try:
        factory = getattr(importlib.import_module(module_name), attribute, None)
    except (Exception, SystemExit) as error:  # a script that is imported may end the process
        hint = "run mpplan in the folder of the module, or put that on PYTHONPATH"
        raise UsageError(f"--task: cannot import `{module_name}`: {_said(error)}", hint=hint) from error
    if not callable(factory):
        raise UsageError(
            f"--task: `{module_name}` has no function `{attribute}`", hint="name the factory after the `:`"
        )
    return Task(
        id=name,
        what="a task of your own",
        metrics=("loss",),
        make=lambda seed, _size, device: _job(name, factory, seed, device),
        steps={SMALL: 300, LARGE: 1000},
        loss_unit=NATS if getattr(factory, "loss_unit", None) == NATS else LOSS,
        seeded_batches=None,
    )


def _job(name: str, factory: Callable[..., Any], seed: int, device: Any) -> Job:
    import torch

    torch.manual_seed(seed)
    takes_seed = "seed" in inspect.signature(factory).parameters
    try:
        returned = factory(seed=seed) if takes_seed else factory()
    except (Exception, SystemExit) as error:
        raise UsageError(
            f"--task: `{name}` failed: {_said(error)}", hint=f"call it without mpplan; it has to {EXPECTED}"
        ) from error
    if not isinstance(returned, tuple) or len(returned) not in (3, 4) or not isinstance(returned[0], torch.nn.Module):
        raise UsageError(f"--task: `{name}` returned {_kind(returned)}", hint=f"it has to {EXPECTED}")
    model, batches, loss = returned[:3]
    _check_fp32(name, model)
    optimizer = returned[3] if len(returned) == 4 else (lambda parameters: torch.optim.AdamW(parameters, lr=RATE))
    if not callable(loss) or not callable(optimizer):
        raise UsageError(
            f"--task: `{name}` returned a loss or optimizer that is not callable", hint=f"it has to {EXPECTED}"
        )
    draw = batches if callable(batches) and not hasattr(batches, "__iter__") else _repeated(name, batches)
    return Job(
        model=model.to(device),
        batch=lambda step: moved(draw(step), device),
        loss=loss,
        optimizer=optimizer,
    )


def _kind(returned: object) -> str:
    """Return in words what a factory gave: a tuple by its length or its first element."""
    if not isinstance(returned, tuple):
        return f"`{type(returned).__name__}`"
    if len(returned) in (3, 4):
        return f"a tuple that begins with `{type(returned[0]).__name__}`, not with a torch.nn.Module"
    return f"a tuple of {len(returned)}"


def _check_fp32(name: str, model: Any) -> None:
    """Check that every weight is in FP32: autocast skips float64, and weights in BF16 are no baseline.

    Raises:
        UsageError: a weight is not in FP32.
    """
    import torch

    for weight_name, weight in model.named_parameters():
        if weight.is_floating_point() and weight.dtype != torch.float32:
            kind = str(weight.dtype).removeprefix("torch.")
            raise UsageError(
                f"--task: `{name}`: the weight `{weight_name}` is in {kind}; every comparison starts from FP32 weights",
                hint="return `model.float()`, and batches in float32",
            )


def _repeated(name: str, batches: Any) -> Callable[[int], Any]:
    """Return the batches of an iterable by step. They are stored as they come, so each step always has the same one."""
    kept: list[Any] = []
    source = [iter(batches)]

    def draw(step: int) -> Any:
        while source and step >= len(kept):
            try:
                kept.append(next(source[0]))
            except StopIteration:
                source.clear()
        if not kept:
            raise UsageError(f"--task: `{name}` returned no batch", hint=f"it has to {EXPECTED}")
        return kept[step % len(kept)]

    return draw


def moved(batch: Any, device: Any) -> Any:
    """Move the tensors of a batch to the device, including those inside tuples, lists and mappings."""
    if hasattr(batch, "to"):
        return batch.to(device)
    if isinstance(batch, Mapping):
        return {key: moved(value, device) for key, value in batch.items()}
    if isinstance(batch, list | tuple):
        return type(batch)(moved(value, device) for value in batch)
    return batch


def _said(error: BaseException) -> str:
    if isinstance(error, SystemExit):
        return f"it called sys.exit({'' if error.code is None else error.code!r})"
    return f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}".rstrip(": ")
