"""When a term has any effect: the columns `when` and `models` of `catalog/parameters.csv`."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from planner.models.shape import ModelShape
from planner.rates.parameters import Family
from planner.rates.terms import Rates, Term
from planner.training.recipe import Recipe


def _by_law(rates: Rates) -> bool:
    """Whether any product is timed with the roofline law because no surface was measured."""
    return any(rates.surface(name) is None for name in ("linear_flop_per_s", "other_flop_per_s"))


EVEN = 1024
"""Sizes that are a multiple of this fill whole memory lines when split over up to 8 GPUs in FP8 or 16 in 16 bit."""


def _rows_end_unevenly(model: ModelShape) -> bool:
    """Whether any size of the layers may be split so that its rows do not fill whole memory lines."""
    return any(size % EVEN for size in (model.hidden, model.ffn_hidden, model.expert_ffn, model.heads * model.head_dim))


CONDITIONS: Mapping[str, Callable[[Recipe, Rates], bool]] = {
    "": lambda recipe, rates: True,
    "naive_attention": lambda recipe, rates: recipe.attention == "naive",
    "flash_attention": lambda recipe, rates: recipe.attention == "flash",
    "misaligned_heads": lambda recipe, rates: recipe.attention == "naive" and not recipe.heads_aligned,
    "uneven_rows": lambda recipe, rates: recipe.policy.linear_compute != "fp32" and _rows_end_unevenly(recipe.model),
    "dropout": lambda recipe, rates: recipe.dropout,
    "autocast": lambda recipe, rates: recipe.autocasts,
    "packed": lambda recipe, rates: recipe.how.low_bits,
    "adapters": lambda recipe, rates: recipe.how.adapts,
    "assumed_lengths": lambda recipe, rates: recipe.lengths_assumed,
    "decomposed": lambda recipe, rates: recipe.how.decomposed,
    "experts": lambda recipe, rates: bool(recipe.model.experts),
    "linear_attention": lambda recipe, rates: recipe.model.linear is not None and recipe.model.linear.scans,
    "blocking_sends": lambda recipe, rates: recipe.kernels == "eager",
    "casts": lambda recipe, rates: bool(recipe.policy.cast_bytes_per_element),
    "offload": lambda recipe, rates: recipe.offload != "none" or recipe.optimizer.paged,
    "host_update": lambda recipe, rates: recipe.offload == "optimizer",
    "all_reduce": lambda recipe, rates: not (recipe.sequence_parallel and recipe.kernels == "tuned"),
    "gathered_inputs": lambda recipe, rates: recipe.sequence_parallel and not recipe.fused,
    "unmeasured_products": lambda recipe, rates: _by_law(rates),
    "operands": lambda recipe, rates: _by_law(rates) or recipe.attention == "naive",
    "own_network": lambda recipe, rates: bool(np.any(rates.measured_domains)),
    "skipped_steps": lambda recipe, rates: bool(np.any(np.less(rates.useful_step_ratio, 1.0))),
    "small_board": lambda recipe, rates: bool(np.any(np.less(rates.host_power_w, rates.host_least_w))),
    "full_precision": lambda recipe, rates: recipe.policy.linear_compute in ("fp32", "tf32"),
    "tf32": lambda recipe, rates: recipe.policy.linear_compute == "tf32",
    "layout_changes": lambda recipe, rates: not recipe.channels_last and recipe.policy.linear_compute != "fp32",
}
"""Whether a term has any effect on a recipe, by the word in the column `when`."""


def has_effect(term: Term, recipe: Recipe, rates: Rates) -> bool:
    """Whether a term has any effect on the figures of a recipe at the given rates."""
    alone = term.family.models
    if alone and (alone == "images") != recipe.model.has_network:
        return False
    return CONDITIONS[term.family.when](recipe, rates)


def read_for(family: Family, recipe: Recipe) -> bool:
    """Whether a recipe has the terms of a family; a transformer lacks those that only vision models use."""
    return recipe.model.has_network or family.models != "images"
