"""The properties of a recipe that select a row of a family, where they need more than a lookup."""

from __future__ import annotations

from planner.models.shape import ModelShape
from planner.training.recipe import Recipe


def memory_format(recipe: Recipe) -> str:
    """How element-wise work around a convolution is executed: `plain`, `fused` or `tuned`."""
    if not recipe.channels_last:
        return "plain"
    return "tuned" if recipe.kernels == "tuned" else "fused"


COMPILED_LOSS_YEAR = 2025.0
"""Decimal year from about which PyTorch trainers compile the loss with the model (pytorch/torchtitan,
`--training.compile`)."""


def stored_loss(recipe: Recipe) -> str:
    """The loss that determines which tensors are kept with the logits: a fused loss, else the stack's at that time."""
    if recipe.chunked_loss:
        return "fused"
    year = recipe.software_year
    if recipe.stack == "fsdp-compile" and year is not None and year < COMPILED_LOSS_YEAR:
        return "eager"
    return recipe.kernels


def attention_kernel(recipe: Recipe) -> str:
    """The attention kernels in use: `fp32` for strict FP32, `tuned` for a tuned stack, otherwise `torch`."""
    return "fp32" if recipe.policy.other_compute in ("fp32", "tf32") else "tuned" if recipe.fused else "torch"


def shape_key(model: ModelShape) -> str:
    """Key of a model for the spread between models; models equal in kind, layers, hidden size and experts share it.

    Vision models have no such sizes, so each network has a key of its own.
    """
    if model.network is not None:
        return f"{model.kind}-{model.network.name}"
    experts = f"-{model.experts}e" if model.experts else ""
    return f"{model.kind}-{model.layers}x{model.hidden}{experts}"
