"""Compressed gradients: bytes on the wire, memory traffic of coding, and memory of what was not sent.

PowerSGD sends two factors of rank r for a matrix of n x m: r (n + m) numbers (arXiv 1905.13727, section 3). 1-bit Adam
sends a bit per element (arXiv 2102.02888, section 7). Both begin with a warm-up without compression, so that the mean
over a run is that of both parts.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from planner.models.image_network import ImageNetwork
from planner.models.shape import ModelShape
from planner.parallelism.layout import Layouts
from planner.rates.terms import Rates, Value
from planner.training.grad_compression import GradCompression
from planner.training.recipe import Recipe

FP32_BYTES = 4.0
Matrix = tuple[Value, Value, Value]
"""How many, rows and columns."""


def sent_bytes(recipe: Recipe, at: Layouts, network: ImageNetwork | None = None) -> Value:
    """Bytes of the gradient reduction per parameter, a run's mean, `[layout]` or one value.

    Args:
        recipe: what is trained.
        at: the layouts; tensor parallel ranks hold parts of a matrix.
        network: of a vision model.
    """
    whole, how = recipe.policy.reduce_bytes, recipe.grad_compression
    if how is None:
        return whole
    coded: Value = how.sent_bits / 8.0
    if how.rank:
        kinds = _matrices(recipe.model, at) if network is None else _image_matrices(network)
        coded = whole * _low_rank_share(list(kinds), how.rank)
    return how.warmup_ratio * whole + (1.0 - how.warmup_ratio) * coded


def coding_s(recipe: Recipe, params: Value, rates: Rates) -> Value:
    """Time to code and decode the gradients of a GPU once, bound by memory."""
    how = recipe.grad_compression
    if how is None:
        return 0.0
    per_param = how.passes * _element_bytes(recipe, how) + how.coded_bytes
    return params * per_param * (1.0 - how.warmup_ratio) / rates.memory_bytes_per_s


def residual_bytes(recipe: Recipe, params: Value, at: Layouts) -> Value:
    """Memory of what was not sent yet, which is added to the next gradient."""
    how = recipe.grad_compression
    if how is None:
        return 0.0
    return np.where(at.dp * at.cp > 1, params * how.residuals * _element_bytes(recipe, how), 0.0)


def _element_bytes(recipe: Recipe, how: GradCompression) -> float:
    """Bytes of an element of what is coded, and of what is kept."""
    return FP32_BYTES if how.fp32 else recipe.policy.reduce_bytes


def _low_rank_share(matrices: list[Matrix], rank: int) -> Value:
    """Numbers of the factors over those of the matrices; a small matrix is sent whole."""
    whole = sum((count * rows * columns for count, rows, columns in matrices), 0.0)
    sent = sum((count * np.minimum(rank * (rows + columns), rows * columns) for count, rows, columns in matrices), 0.0)
    return sent / whole


def _matrices(model: ModelShape, at: Layouts) -> Iterator[Matrix]:
    """The matrices of a transformer: attention as four, feed-forward, experts, and those of the vocabulary."""
    hidden, tp = float(model.hidden), at.tp.astype(np.float64)
    yield 4.0 * model.layers, hidden, model.attention_params / (4.0 * hidden) / tp
    dense = model.layers - model.moe_layers
    if dense and model.ffn_hidden:
        yield float(model.mlp_matrices * dense), hidden, model.ffn_hidden / tp
    if model.moe_layers:
        experts = model.experts / at.ep.astype(np.float64) + model.shared_experts
        yield experts * model.mlp_matrices * model.moe_layers, hidden, float(model.expert_ffn)
    tables = 1.0 if model.tied_embeddings else 2.0
    yield tables, hidden, model.vocab / tp


def _image_matrices(network: ImageNetwork) -> Iterator[Matrix]:
    """Convolutions as their output channels by everything that each reads, and linear layers."""
    for convolution in network.convolutions:
        yield float(convolution.count), float(convolution.outputs), float(convolution.inputs * convolution.taps)
    for product in network.products:
        yield float(product.count), float(product.n), float(product.k)
