"""When a term has any effect: the words of the column `when` of `catalog/parameters.csv`."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from planner.rates.terms import Term
from planner.training.recipe import Recipe

CONDITIONS: Mapping[str, Callable[[Recipe], bool]] = {
    "": lambda recipe: True,
    "naive_attention": lambda recipe: recipe.attention == "naive",
    "flash_attention": lambda recipe: recipe.attention == "flash",
    "misaligned_heads": lambda recipe: recipe.attention == "naive" and not recipe.heads_aligned,
    "dropout": lambda recipe: recipe.dropout,
    "packed": lambda recipe: recipe.method == "qlora",
    "experts": lambda recipe: bool(recipe.model.experts),
    "blocking_sends": lambda recipe: recipe.kernels == "eager",
    "casts": lambda recipe: bool(recipe.policy.cast_bytes_per_element),
    "offload": lambda recipe: recipe.offload != "none",
    "all_reduce": lambda recipe: not (recipe.sequence_parallel and recipe.kernels == "tuned"),
    "gathered_inputs": lambda recipe: recipe.sequence_parallel and not recipe.fused,
    "convolutions": lambda recipe: recipe.model.kind == "cnn",
}
"""Words of the column `when`: whether a term has any effect on a recipe."""


def has_effect(term: Term, recipe: Recipe) -> bool:
    """Whether a term has any effect on what a recipe takes."""
    return CONDITIONS[term.family.when](recipe)
