"""When a term has any effect: the words of the column `when` of `catalog/parameters.csv`."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from planner.models.shape import ModelShape
from planner.rates.terms import Rates, Term
from planner.training.recipe import Recipe


def _by_law(rates: Rates) -> bool:
    """Whether any product takes its time from the law of a roofline, for want of a measured surface."""
    return any(rates.surface(name) is None for name in ("linear_flop_per_s", "other_flop_per_s"))


EVEN = 1024
"""Sizes that are a multiple of this fill whole lines of memory on up to 8 GPUs in FP8, on up to 16 in 16 bit."""


def _rows_end_unevenly(model: ModelShape) -> bool:
    """Whether a size of the layers may be split so that its rows do not fill lines of memory."""
    return any(size % EVEN for size in (model.hidden, model.ffn_hidden, model.expert_ffn, model.heads * model.head_dim))


CONDITIONS: Mapping[str, Callable[[Recipe, Rates], bool]] = {
    "": lambda recipe, rates: True,
    "naive_attention": lambda recipe, rates: recipe.attention == "naive",
    "flash_attention": lambda recipe, rates: recipe.attention == "flash",
    "misaligned_heads": lambda recipe, rates: recipe.attention == "naive" and not recipe.heads_aligned,
    "uneven_rows": lambda recipe, rates: recipe.policy.linear_compute != "fp32" and _rows_end_unevenly(recipe.model),
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
    "skipped_steps": lambda recipe, rates: bool(np.any(np.less(rates.useful_step_ratio, 1.0))),
    "images": lambda recipe, rates: recipe.model.has_network,
    "images_channels_first": lambda recipe, rates: recipe.model.has_network and not recipe.channels_last,
    "images_stored_scores": lambda recipe, rates: recipe.model.has_network and recipe.attention == "naive",
}
"""Words of the column `when`: whether a term has any effect on a recipe."""


TRANSFORMERS_ALONE = frozenset({
    "adapter_passes", "aligned_bytes", "allocator_retry_s", "attention_backward_ratio", "beyond_measured_ratio",
    "cast_fusion_ratio",
    "collective_launch_s", "dropout_passes", "example_length_ratio",
    "expert_load_sd_ratio", "ffn_passes", "framework_ratio", "fusion_ratio",
    "gathered_input_ratio", "grouped_matmul_ratio", "interference_ratio", "kernels_per_adapter", "kernels_per_layer",
    "kernels_per_moe_layer", "logit_bytes", "logit_stored_bytes", "magnitude_passes", "matmul_overlap_ratio",
    "misaligned_ratio",
    "moe_passes", "norm_passes", "overlap_cp_ratio", "overlap_ep_ratio", "overlap_pp_ratio", "overlap_tp_ratio",
    "pcie_bytes_per_s", "pipelined_rank_s", "qkv_passes", "score_passes", "send_stall_s", "stall_gpus",
    "step_overhead_s",
    "stored_activation_ratio", "unaligned_product_ratio", "unpacked_bytes",
})  # fmt: skip
"""Terms that the equations of vision models do not read."""


def has_effect(term: Term, recipe: Recipe, rates: Rates) -> bool:
    """Whether a term has any effect on what a recipe takes at some rates."""
    if recipe.model.has_network and term.name in TRANSFORMERS_ALONE:
        return False
    return CONDITIONS[term.family.when](recipe, rates)


def read_for(when: str, recipe: Recipe) -> bool:
    """Whether the equations of a recipe's model read the terms of a condition at all."""
    return recipe.model.has_network or not when.startswith("images")
