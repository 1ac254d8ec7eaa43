"""Compressed gradients: bytes on the wire, time of coding, and memory of the residuals that were not sent.

PowerSGD sends two factors of rank r for a matrix of n x m: r (n + m) numbers (arXiv 1905.13727, section 3). 1-bit Adam
sends one bit per element (arXiv 2102.02888, section 7). Both start with a warm-up without compression, so the mean over
a run covers both phases.
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
"""Number of matrices of this shape, rows and columns."""


def sent_bytes(recipe: Recipe, at: Layouts, network: ImageNetwork | None = None) -> Value:
    """Bytes of the gradient reduction per parameter, averaged over the run, `[layout]` or one value.

    Args:
        recipe: the model and how it is trained.
        at: the layouts; tensor parallel ranks hold parts of a matrix.
        network: the network of a vision model; None for a transformer.
    """
    uncompressed, compression = recipe.policy.reduce_bytes, recipe.grad_compression
    if compression is None:
        return uncompressed
    compressed: Value = compression.sent_bits / 8.0
    if compression.rank:
        kinds = _matrices(recipe.model, at) if network is None else _image_matrices(network)
        compressed = uncompressed * _low_rank_share(list(kinds), compression.rank)
    return compression.warmup_ratio * uncompressed + (1.0 - compression.warmup_ratio) * compressed


def coding_s(recipe: Recipe, params: Value, rates: Rates) -> Value:
    """Time to code and decode the gradients of a GPU once, averaged over the run and bound by memory bandwidth."""
    how = recipe.grad_compression
    if how is None:
        return 0.0
    per_param = how.passes * _element_bytes(recipe, how) + how.coded_bytes
    return params * per_param * (1.0 - how.warmup_ratio) / rates.memory_bytes_per_s


def residual_bytes(recipe: Recipe, params: Value, at: Layouts) -> Value:
    """Memory of the residual that was not sent yet and is added to the next gradient."""
    how = recipe.grad_compression
    if how is None:
        return 0.0
    return np.where(at.dp * at.cp > 1, params * how.residuals * _element_bytes(recipe, how), 0.0)


def _element_bytes(recipe: Recipe, how: GradCompression) -> float:
    """Bytes per element of the gradients that are coded and of the residuals that are kept."""
    return FP32_BYTES if how.fp32 else recipe.policy.reduce_bytes


def _low_rank_share(matrices: list[Matrix], rank: int) -> Value:
    """Elements sent as factors over elements of the matrices; a matrix too small to gain from factors is sent whole."""
    dense_elements = sum((count * rows * columns for count, rows, columns in matrices), 0.0)
    sent_elements = sum(
        (count * np.minimum(rank * (rows + columns), rows * columns) for count, rows, columns in matrices), 0.0
    )
    return sent_elements / dense_elements


def _matrices(model: ModelShape, at: Layouts) -> Iterator[Matrix]:
    """The matrices of a transformer: attention as four, feed-forward, experts, and the vocabulary tables.

    In a hybrid model, attention and linear attention together count as four matrices per layer.
    """
    hidden, tp = float(model.hidden), at.tp.astype(np.float64)
    yield 4.0 * model.layers, hidden, model.mixer_params / (4.0 * hidden) / tp
    dense = model.dense_ffn_share * (model.layers - model.moe_layers)
    if dense and model.ffn_hidden:
        yield float(model.mlp_matrices * dense), hidden, model.ffn_hidden / tp
    if model.moe_layers:
        each = float(model.mlp_matrices * model.moe_layers)
        yield each * model.experts / at.ep.astype(np.float64), float(model.expert_width), float(model.expert_ffn)
        if model.shared_experts:
            yield each, hidden, model.shared_experts * model.expert_ffn / tp
    tables = 1.0 if model.tied_embeddings else 2.0
    yield tables, hidden, model.vocab / tp


def _image_matrices(network: ImageNetwork) -> Iterator[Matrix]:
    """The matrices of a vision model: linear layers, and convolutions as output channels by inputs of each output."""
    for convolution in network.convolutions:
        yield float(convolution.count), float(convolution.outputs), float(convolution.inputs * convolution.taps)
    for product in network.products:
        yield float(product.count), float(product.n), float(product.k)
