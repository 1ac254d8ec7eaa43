"""Precisions and how each is applied to a module. One file per recipe, listed here, slowest first."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from planner.errors import UsageError
from probes.precisions.high import bf16_autocast, bf16_fsdp, bf16_pure, fp16_autocast, fp32, tf32
from probes.precisions.interface import PrecisionRecipe
from probes.precisions.low import fp8_rowwise, fp8_tensorwise, mxfp8

RECIPES: tuple[PrecisionRecipe, ...] = (
    fp32.RECIPE,
    tf32.RECIPE,
    fp16_autocast.RECIPE,
    bf16_autocast.RECIPE,
    bf16_fsdp.RECIPE,
    bf16_pure.RECIPE,
    fp8_tensorwise.RECIPE,
    fp8_rowwise.RECIPE,
    mxfp8.RECIPE,
)
"""All recipes."""

PRECISIONS: tuple[str, ...] = tuple(dict.fromkeys(recipe.precision for recipe in RECIPES))
"""Precisions that a user can ask for."""


def recipe_by_id(name: str) -> PrecisionRecipe:
    """Return the recipe with this id.

    Raises:
        KeyError: no recipe has this id (a bug in the caller).
    """
    return {recipe.id: recipe for recipe in RECIPES}[name]


def choose(names: Iterable[str], device_kind: str = "cuda") -> tuple[PrecisionRecipe, ...]:
    """Return the recipes of the given precisions or ids, in the order of the registry; all if no name is given.

    On a CPU, FP16 is included only by name, because it is ten times slower than FP32 there.

    Raises:
        UsageError: a name is neither a precision nor a recipe.
    """
    asked: Sequence[str] = [name.strip().lower() for name in names if name.strip()]
    known = {recipe.id for recipe in RECIPES} | set(PRECISIONS)
    for name in asked:
        if name not in known:
            listed = ", ".join(dict.fromkeys([*PRECISIONS, *(recipe.id for recipe in RECIPES)]))
            raise UsageError(f"unknown precision `{name}`", hint=f"use one of {listed}")
    if not asked:
        return tuple(recipe for recipe in RECIPES if device_kind != "cpu" or recipe.id != "fp16")
    return tuple(recipe for recipe in RECIPES if {recipe.id, recipe.precision} & set(asked))
