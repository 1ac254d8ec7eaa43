"""Mean power of the matrix products of a step, from the draw of each by its shape."""

from __future__ import annotations

from planner.parallelism.layout import Layouts
from planner.performance.operations import MatMul, Splits, count_work
from planner.performance.products import by_rate, passes_alone, product_times
from planner.rates.terms import Rates, Value
from planner.training.recipe import Recipe


def products_draw_ratio(recipe: Recipe, at: Layouts, rates: Rates) -> Value:
    """Mean power of all products over that of products which hold the power limit, `[layout]`.

    Each counts for as long as it runs alone; every layer of the model and its output layer are in the mean. Types whose
    draw nobody measured by shape (TF32, FP32, and all types of GPUs without a surface) hold the limit: an assumption.

    Args:
        recipe: what is trained.
        at: the layouts.
        rates: mid values or draws.
    """
    work, model = count_work(recipe, at, rates.expert_imbalance_ratio), recipe.model
    drawn: Value = 0.0
    held: Value = 0.0
    layers = ((work.dense_layer, model.layers - model.moe_layers), (work.moe_layer, model.moe_layers))
    for ops, times in (*layers, ((work.head,), 1)):
        if times > 0:
            ops_drawn, ops_held = _full_power_s(ops, work.splits, recipe, rates)
            drawn, held = drawn + times * ops_drawn, held + times * ops_held
    return drawn / held


def _full_power_s(ops: tuple[MatMul, ...], splits: Splits, recipe: Recipe, rates: Rates) -> tuple[Value, Value]:
    """Seconds of some products, weighted by their power over that of products which hold the limit, and unweighted."""
    drawn: Value = 0.0
    held: Value = 0.0
    for name, alike in by_rate(ops):
        surface, power = rates.surface(name), rates.power(name)
        if surface is None or power is None:
            seconds = product_times(alike, splits, recipe, rates).total
            drawn, held = drawn + seconds, held + seconds
            continue
        passes = passes_alone(alike, splits, surface, recipe, rates)
        alone_w = power.alone_w(passes.m, passes.n, passes.k, passes.seconds)
        seconds = passes.seconds * passes.runs / power.clock(alone_w)
        drawn = drawn + splits.spread((seconds * power.limited_ratio(alone_w)).sum(axis=(0, 1)))
        held = held + splits.spread(seconds.sum(axis=(0, 1)))
    return drawn, held
