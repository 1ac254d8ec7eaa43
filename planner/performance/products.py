"""Time and power of matrix products, forward and backward, from surfaces measured by shape or from a roofline law.

The backward pass of a product is two products with the dimensions permuted: `[m, n] x [n, k]` for the input gradient
and `[n, m] x [m, k]` for the weight gradient. Layouts with the same split of a layer have the same products.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from planner.kernels.power import ProductPower
from planner.kernels.surface import Floats, Surface, large_flop_per_s, product_s
from planner.lazy import dataclass
from planner.parallelism.layout import Layouts
from planner.performance.operations import Array, MatMul, Work, work_of
from planner.rates.terms import Rates, Value
from planner.training.recipe import Recipe


@dataclass(frozen=True, slots=True, kw_only=True)
class ProductTimes:
    """Seconds of a list of products of one layer and micro-batch, `[split]`, `[draw]` or `[split, draw]`."""

    forward: Value
    """One forward pass."""
    backward: Value
    """The backward pass, plus the reference model's forward pass where it scores the same answers."""

    @property
    def total(self) -> Value:
        """All passes."""
        return self.forward + self.backward

    def plus(self, other: ProductTimes) -> ProductTimes:
        """The times of this list and another added up."""
        return ProductTimes(forward=self.forward + other.forward, backward=self.backward + other.backward)


@dataclass(frozen=True, slots=True, kw_only=True)
class PassShares:
    """How often each pass over a set of weights is run per forward pass of a micro-batch."""

    inputs: float
    """Gradient of the inputs."""
    weights: float
    """Gradient of the weights; 0 for frozen weights."""
    reference: float
    """Forward pass of the reference model that scores the same answers; 0 without a reference."""

    @property
    def total(self) -> float:
        """All passes."""
        return 1.0 + self.inputs + self.weights + self.reference


def layer_shares(recipe: Recipe) -> PassShares:
    """Pass shares of a layer, averaged over all layers."""
    reference = recipe.forward_passes - 1.0
    return PassShares(inputs=recipe.backward_share, weights=recipe.weight_gradient_share, reference=reference)


def head_shares(recipe: Recipe) -> PassShares:
    """Pass shares of the output layer, which is trained only where every weight is."""
    return PassShares(inputs=1.0, weights=1.0 if recipe.trains_all else 0.0, reference=recipe.forward_passes - 1.0)


def product_times(
    ops: Sequence[MatMul], recipe: Recipe, rates: Rates, shares: PassShares | None = None
) -> ProductTimes:
    """Time of a list of products.

    Args:
        ops: the products, forward.
        recipe: the model and how it is trained; frozen weights get no gradient.
        rates: mid values or draws; surfaces are used for the terms that have them.
        shares: how often each backward pass is run; None for the shares of a layer.
    """
    shares = shares or layer_shares(recipe)
    times = ProductTimes(forward=0.0, backward=0.0)
    for name, alike in _alike(ops):
        surface = rates.surface(name)
        if surface is None:
            times = times.plus(_by_law(alike, recipe, rates, shares))
        else:
            slower = large_flop_per_s(surface) / getattr(rates, name)
            passes = passes_alone(alike, surface, recipe, rates, shares)
            times = times.plus(_measured(passes, slower, rates.unaligned_product_ratio, rates.power(name)))
    return times


def _alike(ops: Sequence[MatMul]) -> Iterator[tuple[str, list[MatMul]]]:
    """Group products by the name of their rate term, and within it by the shape of `m`.

    Products of experts whose load is drawn have drawn rows and form a separate group.
    """
    for name, low in (("linear_flop_per_s", True), ("other_flop_per_s", False)):
        rated = [op for op in ops if op.low_precision is low]
        for shape in dict.fromkeys(op.m.shape for op in rated):
            yield name, [op for op in rated if op.m.shape == shape]


def _by_law(ops: Sequence[MatMul], recipe: Recipe, rates: Rates, shares: PassShares) -> ProductTimes:
    forward = sum((law_s(op, recipe, rates) for op in ops), 0.0)
    return ProductTimes(forward=forward, backward=forward * (shares.total - 1.0))


def law_s(op: MatMul, recipe: Recipe, rates: Rates) -> Value:
    """Seconds of the forward product where no surface is known; each backward product takes equally long.

    The time is `flop / rate + operand bytes / bandwidth + fixed`, less a share of the smaller of the first two terms,
    since arithmetic and traffic overlap only in part. The law reproduces the lower efficiency of small shapes without
    a table. A `mean_count` below 1 is the share of layers that have the product.
    """
    return _law_alone(op, recipe, rates)[0] * op.mean_count + np.minimum(op.mean_count, 1.0) * rates.kernel_s


def _law_alone(op: MatMul, recipe: Recipe, rates: Rates) -> tuple[Value, Value]:
    """Seconds of one product by the law, and its power relative to products that run at the power limit.

    Under a reduced power limit, a product that draws less power keeps more of its clock than one that would reach the
    limit as sold.
    """
    name = "linear_flop_per_s" if op.low_precision else "other_flop_per_s"
    power, rate = rates.power(name), getattr(rates, name)
    if op.grouped:
        rate = rate * rates.grouped_matmul_ratio
    policy = recipe.policy
    operand_bytes = policy.operand_bytes if op.low_precision else policy.activation_bytes
    moved_bytes = (op.m * op.k + op.n * op.k) * operand_bytes + op.m * op.n * policy.activation_bytes
    flop = 2.0 * op.m * op.n * op.k
    arithmetic, traffic = flop / rate, moved_bytes / rates.operand_bytes_per_s
    if op.low_precision:
        halved = halvings(np.asarray(op.n), np.asarray(op.k), recipe, rates)
        arithmetic = arithmetic * rates.unaligned_product_ratio**-halved

    def joined(arithmetic: Value) -> Value:
        return arithmetic + traffic - rates.matmul_overlap_ratio * np.minimum(arithmetic, traffic)

    if power is None:
        return joined(arithmetic), 1.0
    as_sold = arithmetic * power.clock(power.held_w)
    alone_w = power.alone_w(op.m, op.n, op.k, joined(as_sold))
    return joined(as_sold / power.clock(alone_w)), power.limited_power_ratio(alone_w)


def halvings(n: Array, k: Array, recipe: Recipe, rates: Rates) -> Array:
    """Number of powers of two by which a layer's operand rows miss their alignment, in the shape of `n` and `k`.

    Tensor cores read operands in pieces of `aligned_bytes`. If the row size is a multiple of only a half of that, a
    quarter and so on, each halving slows the product by `unaligned_product_ratio`. Vocabularies are padded and
    therefore not checked.
    """
    if recipe.policy.linear_compute == "fp32":  # CUDA cores
        return np.zeros(1)
    wanted = np.max(rates.aligned_bytes)
    lowest = np.minimum(*(_power_of_two_in(np.rint(size * recipe.policy.operand_bytes)) for size in (n, k)))
    return np.asarray(np.log2(np.maximum(wanted / lowest, 1.0)))


def _power_of_two_in(numbers: Array) -> Array:
    """The largest power of two that divides each whole number above 0."""
    integers = np.maximum(numbers, 1.0).astype(np.int64)
    return (integers & -integers).astype(np.float64)


@dataclass(frozen=True, slots=True, kw_only=True)
class Passes:
    """Forward and backward products of a list, timed in isolation: `[pass, product, split]`, with or without draws."""

    m: Floats
    n: Floats
    k: Floats
    seconds: Floats
    """Time of one run, sustained under the power limit as sold."""
    runs: Value
    """Number of such runs that make up a layer's time, for each pass; not an integer for grouped products."""
    halvings: Floats
    """How far each product misses the alignment of tensor cores (`halvings`), `[product, ...]` or one for all."""


def passes_alone(ops: Sequence[MatMul], surface: Surface, recipe: Recipe, rates: Rates, shares: PassShares) -> Passes:
    """Look up products and their backward passes on a surface, all at once.

    A grouped kernel of `mean_count` products is looked up as one product that is `mean_count` times as wide: it has as
    many tiles and reads the same weights.
    """
    sizes = _stacked([getattr(op, name) for name in ("m", "n", "k", "mean_count") for op in ops])
    m, n, k, count = sizes.reshape(4, len(ops), *sizes.shape[1:])
    wide: Value = 1.0
    runs: Value = count
    if any(op.grouped for op in ops):
        grouped = np.array([op.grouped for op in ops]).reshape(-1, *(1,) * (count.ndim - 1))
        wide, runs = np.where(grouped, count, 1.0), np.where(grouped, 1.0 / rates.grouped_matmul_ratio, count)
    halved = halvings(n, k, recipe, rates) if ops[0].low_precision else np.zeros(1)
    passes = [(m, n * wide, k), (m, k * wide, n), (n, k * wide, m), (m, n * wide, k)]
    counts = (1.0, shares.inputs, shares.weights, shares.reference)
    passes = [sizes for sizes, times in zip(passes, counts, strict=True) if times]
    m, n, k = (_stacked(sizes) for sizes in zip(*passes, strict=True))
    times = np.array([each for each in counts if each]).reshape(-1, *(1,) * count.ndim)
    return Passes(m=m, n=n, k=k, seconds=np.asarray(product_s(surface, m, n, k)), runs=runs * times, halvings=halved)


def _measured(passes: Passes, slower: Value, unaligned_ratio: Value, power: ProductPower | None) -> ProductTimes:
    """Times from a surface; under a reduced power limit, products that draw less keep more of their clock."""
    seconds = passes.seconds
    if power is not None and power.limit_w < power.held_w:
        alone_w = power.alone_w(passes.m, passes.n, passes.k, seconds)
        seconds = seconds * power.clock(power.held_w) / power.clock(alone_w)
    spent, times = seconds * passes.runs, ProductTimes(forward=0.0, backward=0.0)
    for halved in sorted(set(passes.halvings.ravel().tolist())):
        by_pass = _summed(np.where(passes.halvings == halved, spent, 0.0).swapaxes(0, 1))
        longer = slower * unaligned_ratio**-halved
        times = times.plus(ProductTimes(forward=by_pass[0] * longer, backward=_summed(by_pass[1:]) * longer))
    return times


def _summed(values: Floats) -> Floats:
    """Sum along the first axis, term by term.

    The last bit of `numpy.sum` depends on the size of the other axes. Adding term by term gives a layout the same
    figure whether it is evaluated alone or among others.
    """
    return np.asarray(sum(values[1:], values[0])) if len(values) else np.zeros(values.shape[1:])


def _stacked(values: Sequence[Value]) -> Floats:
    """Arrays broadcast to one shape and stacked along a new first axis."""
    shape = np.broadcast_shapes(*map(np.shape, values))  # unlike `np.broadcast`, of any number of arrays
    result = np.empty((len(values), *shape))
    for row, value in zip(result, values, strict=True):
        row[...] = value
    return result


def cast_bytes_per_s(recipe: Recipe, rates: Rates) -> Value:
    """Rate at which operands are cast to a narrow type.

    Eager PyTorch casts in separate kernels, like the inference stacks whose casts were measured. Other stacks cast
    within the preceding norms and activations, at memory bandwidth.
    """
    surface = rates.surface("linear_flop_per_s")
    measured = surface.cast_bytes_per_s if surface is not None and recipe.kernels == "eager" else None
    return rates.memory_bytes_per_s if measured is None else measured


def cast_s(op: MatMul, recipe: Recipe, rates: Rates) -> Value:
    """Time of FP8's extra memory traffic for one product, forward and backward: amax and casts of its three tensors."""
    per_element = recipe.policy.cast_bytes_per_element
    if not (per_element and op.low_precision):
        return 0.0
    elements = (op.m * op.k + op.m * op.n + op.n * op.k) * op.mean_count
    return elements * per_element * rates.cast_fusion_ratio / cast_bytes_per_s(recipe, rates)


def products_draw_ratio(recipe: Recipe, at: Layouts, rates: Rates, work: Work | None = None) -> Value:
    """Mean power of all products relative to products that run at the power limit, `[layout]`.

    The mean is over every layer of the model and its output layer. Each product is weighted by the time that it takes
    alone and aligned. On a GPU whose architecture has no measured products, all are assumed to run at the limit.

    Args:
        recipe: the model and how it is trained.
        at: the layouts.
        rates: mid values or draws.
        work: the work of the layouts if already computed.
    """
    work, model = work_of(recipe, at, rates) if work is None else work, recipe.model
    weighted_s: Value = 0.0
    total_s: Value = 0.0
    in_layers, in_head = layer_shares(recipe), head_shares(recipe)
    parts = (
        (work.dense_layer, model.layers - model.moe_layers, in_layers),
        (work.moe_layer, model.moe_layers, in_layers),
        ((work.head,), 1, in_head),
    )
    for ops, times, shares in parts:
        if times > 0:
            ops_weighted_s, ops_total_s = _full_power_s(ops, recipe, rates, shares)
            weighted_s, total_s = weighted_s + times * ops_weighted_s, total_s + times * ops_total_s
    return work.splits.spread(weighted_s / total_s)


def _full_power_s(ops: tuple[MatMul, ...], recipe: Recipe, rates: Rates, shares: PassShares) -> tuple[Value, Value]:
    """Total seconds of products: weighted by their power relative to products at the power limit, and unweighted."""
    weighted_s: Value = 0.0
    total_s: Value = 0.0
    for name, alike in _alike(ops):
        surface, power = rates.surface(name), rates.power(name)
        if surface is None:
            for op in alike:
                alone_s, ratio = _law_alone(op, recipe, rates)
                seconds = (alone_s * op.mean_count + np.minimum(op.mean_count, 1.0) * rates.kernel_s) * shares.total
                weighted_s, total_s = weighted_s + seconds * ratio, total_s + seconds
            continue
        if power is None:
            seconds = product_times(alike, recipe, rates, shares).total
            weighted_s, total_s = weighted_s + seconds, total_s + seconds
            continue
        passes = passes_alone(alike, surface, recipe, rates, shares)
        alone_w = power.alone_w(passes.m, passes.n, passes.k, passes.seconds)
        seconds = passes.seconds * passes.runs / power.clock(alone_w)
        weighted_s = weighted_s + _summed(_summed(seconds * power.limited_power_ratio(alone_w)))
        total_s = total_s + _summed(_summed(seconds))
    return weighted_s, total_s
