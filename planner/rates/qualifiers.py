"""What of a recipe chooses among the rows of a family, where it takes more than a word."""

from __future__ import annotations

from planner.models.shape import ModelShape
from planner.training.recipe import Recipe


def memory_format(recipe: Recipe) -> str:
    """How element-wise work is done around a convolution."""
    if not recipe.channels_last:
        return "plain"
    return "tuned" if recipe.kernels == "tuned" else "fused"


COMPILED_LOSS_YEAR = 2025.0
"""From about then PyTorch's trainers compile the loss with the model (pytorch/torchtitan, `--training.compile`)."""


def stored_loss(recipe: Recipe) -> str:
    """Whose loss decides what lies beside the logits: a fused one's, else that of the stack in its time."""
    if recipe.chunked_loss:
        return "fused"
    year = recipe.software_year
    if recipe.stack == "fsdp-compile" and year is not None and year < COMPILED_LOSS_YEAR:
        return "eager"
    return recipe.kernels


def attention_kernel(recipe: Recipe) -> str:
    """Whose attention kernels run: those of strict FP32, a tuned stack's, or PyTorch's."""
    return "fp32" if recipe.policy.other_compute in ("fp32", "tf32") else "tuned" if recipe.fused else "torch"


def shape_key(model: ModelShape) -> str:
    """What makes two models one to the spread between models: kind, layers, hidden size and experts; not the name."""
    experts = f"-{model.experts}e" if model.experts else ""
    return f"{model.kind}-{model.layers}x{model.hidden}{experts}"
