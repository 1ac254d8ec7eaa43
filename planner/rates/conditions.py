"""When a term has any effect: the words of the column `when` of `catalog/parameters.csv`."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from planner.rates.terms import Rates, Term
from planner.training.recipe import Recipe


def _by_law(rates: Rates) -> bool:
    """Whether any product takes its time from the law of a roofline, for want of a measured surface."""
    return any(rates.surface(name) is None for name in ("linear_flop_per_s", "other_flop_per_s"))


CONDITIONS: Mapping[str, Callable[[Recipe, Rates], bool]] = {
    "": lambda recipe, rates: True,
    "naive_attention": lambda recipe, rates: recipe.attention == "naive",
    "flash_attention": lambda recipe, rates: recipe.attention == "flash",
    "misaligned_heads": lambda recipe, rates: recipe.attention == "naive" and not recipe.heads_aligned,
    "dropout": lambda recipe, rates: recipe.dropout,
    "packed": lambda recipe, rates: recipe.how.low_bits,
    "adapters": lambda recipe, rates: recipe.how.adapts,
    "assumed_lengths": lambda recipe, rates: recipe.lengths_assumed,
    "decomposed": lambda recipe, rates: recipe.how.decomposed,
    "experts": lambda recipe, rates: bool(recipe.model.experts),
    "blocking_sends": lambda recipe, rates: recipe.kernels == "eager",
    "casts": lambda recipe, rates: bool(recipe.policy.cast_bytes_per_element),
    "offload": lambda recipe, rates: recipe.offload != "none" or recipe.optimizer.paged,
    "all_reduce": lambda recipe, rates: not (recipe.sequence_parallel and recipe.kernels == "tuned"),
    "gathered_inputs": lambda recipe, rates: recipe.sequence_parallel and not recipe.fused,
    "unmeasured_products": lambda recipe, rates: _by_law(rates),
    "operands": lambda recipe, rates: _by_law(rates) or recipe.attention == "naive",
    "own_network": lambda recipe, rates: bool(np.any(rates.measured_domains)),
    "convolutions": lambda recipe, rates: recipe.model.kind == "cnn",
}
"""Words of the column `when`: whether a term has any effect on a recipe."""


def has_effect(term: Term, recipe: Recipe, rates: Rates) -> bool:
    """Whether a term has any effect on what a recipe takes at some rates."""
    return CONDITIONS[term.family.when](recipe, rates)
