"""The tensor parallel sizes that split a model's heads and feed-forward blocks evenly."""

from __future__ import annotations

from planner.errors import Message, UsageError
from planner.hardware.cluster import Cluster
from planner.models.shape import ModelShape
from planner.training.recipe import Recipe

MOST_TRIED = 16
"""Largest tensor parallel size that a search tries."""
MOST_NAMED = 64
"""Largest size that a hint names."""


def tensor_sizes(recipe: Recipe, cluster: Cluster) -> list[int]:
    """Powers of two up to 16 that split the model and fit in an NVLink domain, else a node; 1 for 4-bit weights."""
    near = cluster.nvlink_domain if cluster.nvlink_domain > 1 else cluster.gpus_per_node
    limit = 1 if recipe.how.low_bits else min(near, MOST_TRIED, max(recipe.model.heads_to_split, 1))
    return [2**power for power in range(limit.bit_length()) if _misfit(recipe.model, 2**power) is None]


def check_tensor_size(model: ModelShape, tp: int) -> None:
    """Check that a tensor parallel size splits the model.

    Raises:
        UsageError: it does not; the hint names the sizes that do.
    """
    misfit = _misfit(model, tp)
    if misfit is not None:
        able = tuple(size for size in range(1, MOST_NAMED + 1) if _misfit(model, size) is None)
        raise UsageError(misfit, hint=Message.of("hint.one_of", values=able))


def _misfit(model: ModelShape, tp: int) -> Message | None:
    """Return what a tensor parallel size does not split evenly; None where Megatron-Core accepts it.

    Its `TransformerConfig` wants the query heads to be a multiple of the size, and the key and value heads a multiple
    or a divisor (ranks then hold copies); its parallel linear layers divide the feed-forward size
    (NVIDIA/Megatron-LM, `megatron/core/transformer/transformer_config.py` and `tensor_parallel/layers.py`, August
    2026). Latent attention has no key and value heads to split.
    """
    if model.heads_to_split % tp:
        key = "error.tp_heads" if model.linear is None else "error.tp_linear_heads"
        return Message.of(key, tp=tp, heads=model.heads_to_split, model=model.name)
    grouped = model.kv_lora_rank is None and model.attention_layers != 0
    if grouped and model.kv_heads % tp and tp % model.kv_heads:
        return Message.of("error.tp_kv_heads", tp=tp, heads=model.kv_heads, model=model.name)
    sizes = (model.ffn_hidden, model.expert_ffn if model.experts else 0)
    uneven = next((size for size in sizes if size % tp), None)
    return None if uneven is None else Message.of("error.tp_ffn", tp=tp, size=uneven, model=model.name)
