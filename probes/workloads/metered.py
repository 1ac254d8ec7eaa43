"""Which recipes of a group have their energy measured: a window costs five times what the timing does."""

from __future__ import annotations

from collections.abc import Iterable

from probes.precisions.interface import PrecisionRecipe

PREFERRED = ("fp32", "tf32", "bf16-fsdp", "bf16-autocast", "fp8", "fp8-rowwise", "mxfp8")
"""The first of each precision that a group holds. FP16 is left to the thorough suite: it draws what BF16 does."""


def metered(recipes: Iterable[PrecisionRecipe], suite: str) -> frozenset[str]:
    """Ids of the recipes whose energy is measured, one for each precision; all of them in the thorough suite."""
    chosen = {recipe.id: recipe.precision for recipe in recipes}
    if suite == "thorough":
        return frozenset(chosen)
    first = {chosen[name]: name for name in reversed(PREFERRED) if name in chosen}
    return frozenset(first.values())
