"""The kernels behind the step of one layout, products and attention: shape, time, rate, and the source of each."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from planner.kernels.gain import NarrowGain, NarrowTypes, narrow_gain
from planner.lazy import dataclass
from planner.parallelism.layout import Layouts
from planner.performance.compute import FLASH_BACKWARD, attention_time
from planner.performance.operations import MatMul, Work, work_of
from planner.performance.products import cast_bytes_per_s, head_shares, layer_shares, product_times
from planner.rates.terms import Rates, Value
from planner.training.recipe import Recipe
from planner.units import TERA

PRODUCTS_OF = ("layer", "moe_layer", "head")
"""Places of products: in a layer, in a layer with experts, in the output layer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProductUse:
    """One matrix product of a layer, or the output layer, for one micro-batch on one GPU."""

    where: str
    """One of `PRODUCTS_OF`."""
    m: float
    n: float
    k: float
    count: float
    """Number of products of this shape: experts on the GPU, or 1."""
    compute: str
    """Compute type."""
    step_s: float
    """Time of the forward and backward pass."""
    tflops: float
    """TFLOP/s over the forward and backward pass."""
    share_ratio: float
    """Share in the time of all products of the model."""
    evidence: str | None
    """Id of the measured surface; None: a roofline model."""


def products_used(recipe: Recipe, at: Layouts, rates: Rates) -> tuple[ProductUse, ...]:
    """Return every product of a layer of each kind and of the output layer, at mid values.

    Args:
        recipe: what is trained.
        at: exactly one layout.
        rates: mid values.
    """
    work, model = work_of(recipe, at, rates), recipe.model
    times = {"layer": model.layers - model.moe_layers, "moe_layer": model.moe_layers, "head": 1}
    used = [_use(where, op, recipe, rates) for where, op in _matmuls(recipe, work)]
    total_s = sum(times[use.where] * use.step_s for use in used)
    return tuple(replace(use, share_ratio=round(times[use.where] * use.step_s / total_s, 11)) for use in used)


def _matmuls(recipe: Recipe, work: Work) -> Iterator[tuple[str, MatMul]]:
    if recipe.model.moe_layers < recipe.model.layers:
        yield from (("layer", op) for op in work.dense_layer)
    yield from (("moe_layer", op) for op in work.moe_layer)
    yield "head", work.head


def _use(where: str, op: MatMul, recipe: Recipe, rates: Rates) -> ProductUse:
    shares = head_shares(recipe) if where == "head" else layer_shares(recipe)
    times = product_times((op,), recipe, rates, shares)
    surface = rates.surface("linear_flop_per_s" if op.low_precision else "other_flop_per_s")
    m, n, k, count = (only(size) for size in (op.m, op.n, op.k, op.mean_count))
    step_s = only(times.total)
    flop = 2.0 * m * n * k * count * shares.total
    return ProductUse(
        where=where, m=m, n=n, k=k, count=count,
        compute=recipe.policy.linear_compute if op.low_precision else recipe.policy.other_compute,
        step_s=six_digits(step_s), tflops=six_digits(flop / step_s / TERA), share_ratio=0.0,
        evidence=None if surface is None else surface.evidence.id,
    )  # fmt: skip


def six_digits(value: float) -> float:
    """Round to six digits, since a document holds many kernels."""
    return float(f"{value:.6g}")


@dataclass(frozen=True, slots=True, kw_only=True)
class AttentionUse:
    """The attention core of one layer, for one micro-batch on one GPU."""

    heads: float
    """Query heads times sequences."""
    head_dim: float
    length: float
    """Length of the causal sequence whose queries meet as many keys as those of one kernel."""
    chunks: float
    """Number of kernels, one for each chunk of keys and values under context parallelism."""
    compute: str
    """Compute type."""
    step_s: float
    """Time of the forward and backward pass."""
    tflops: float
    """TFLOP/s over the forward and backward pass, which computes the scores again."""
    evidence: str | None
    """Id of the measured surface; None: a share of the peak."""


def attention_used(recipe: Recipe, at: Layouts, rates: Rates) -> AttentionUse | None:
    """Return the attention kernel at mid values; arguments as in `products_used`.

    None where no layer attends, or the scores are stored.
    """
    if recipe.attention == "naive" or not recipe.model.attention_share:
        return None
    work, surface = work_of(recipe, at, rates), rates.surface("attention_flop_per_s")
    step_s = only(attention_time(recipe, work, rates).total)
    flop = only(work.attention_flop) * (1.0 + FLASH_BACKWARD)
    return AttentionUse(
        heads=only(work.attention_heads), head_dim=0.5 * (recipe.model.head_dim + recipe.model.value_dim),
        length=only(work.attention_length), chunks=only(work.attention_chunks),
        compute=recipe.policy.other_compute, step_s=six_digits(step_s), tflops=six_digits(flop / step_s / TERA),
        evidence=None if surface is None else surface.evidence.id,
    )  # fmt: skip


def only(value: Value) -> float:
    """Return the value of the only layout."""
    return float(np.ravel(value)[0])


def gain_of_narrow(recipe: Recipe, rates: Rates, products: tuple[ProductUse, ...]) -> NarrowGain | None:
    """Return the gain of the policy's narrow products over BF16 at the longest; None where either was not measured."""
    policy = recipe.policy
    narrow, wide = rates.surface("linear_flop_per_s"), rates.surface("other_flop_per_s")
    chosen = [use for use in products if use.compute == policy.linear_compute]
    if not policy.narrow or narrow is None or wide is None or not chosen:
        return None
    cast_s = float(policy.cast_bytes_per_element * rates.cast_fusion_ratio / cast_bytes_per_s(recipe, rates))
    longest = max(chosen, key=lambda use: use.step_s)
    types = NarrowTypes(wide=wide, narrow=narrow, cast_s_per_element=cast_s)
    n = longest.n * max(longest.count, 1.0)
    return narrow_gain(types, longest.m, n, longest.k, float(recipe.model.hidden))
