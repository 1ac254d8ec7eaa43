"""The global batch sizes that a partly fixed layout can divide on a given number of GPUs."""

from __future__ import annotations

from planner.hardware.cluster import Cluster
from planner.parallelism.search import FixedLayout, context_sizes, fixed_or, pipeline_depths
from planner.parallelism.tensor import tensor_sizes
from planner.training.recipe import Recipe


def is_fixed(fixed: FixedLayout) -> bool:
    """Whether any fixed size of a layout restricts the batches that it can divide."""
    return any(size is not None for size in (fixed.tp, fixed.pp, fixed.cp, fixed.dp, fixed.micro_batch, fixed.vp))


def batches_near(recipe: Recipe, cluster: Cluster, fixed: FixedLayout, gpus: int) -> tuple[int, int] | None:
    """The nearest batches below and above the recipe's (or equal to it) that a layout on so many GPUs can divide.

    None if no layout exists. If even the smallest possible batch is larger than the recipe's, both values are that one.
    """
    steps = _steps(recipe, cluster, fixed, gpus)
    batch = recipe.global_batch
    if not steps:
        return None
    above = min(-(-batch // step) * step for step in steps)
    return max(batch // step * step for step in steps) or above, above


def _steps(recipe: Recipe, cluster: Cluster, fixed: FixedLayout, gpus: int) -> set[int]:
    """Sequences of one round of micro-batches, which divide any batch, for every split of the model over the GPUs."""
    micro_batch = fixed.micro_batch or recipe.how.sequences_per_example
    return {
        gpus // (tp * cp * pp) * micro_batch * (pp if (fixed.vp or 1) > 1 else 1)
        for tp in fixed_or(fixed.tp, tensor_sizes(recipe, cluster))
        for cp in fixed_or(fixed.cp, context_sizes(recipe, gpus))
        for pp in fixed_or(fixed.pp, pipeline_depths(recipe, on_given_gpus=True))
        if gpus % (tp * cp * pp) == 0 and fixed.dp in (None, gpus // (tp * cp * pp))
    }
