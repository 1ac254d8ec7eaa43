"""Selects the recipes of a group whose energy is measured: an energy window takes five times as long as timing."""

from __future__ import annotations

from collections.abc import Iterable

from probes.precisions.interface import PrecisionRecipe

PREFERRED = ("fp32", "tf32", "bf16-fsdp", "bf16-autocast", "fp8", "fp8-rowwise", "mxfp8")
"""The first one of each precision in a group is measured. FP16, which draws what BF16 does, is left to `thorough`,
unless a group has no BF16, as before Ampere."""


def metered(recipes: Iterable[PrecisionRecipe], suite: str) -> frozenset[str]:
    """Return the ids of the recipes whose energy is measured: one per precision, or all in the thorough suite."""
    chosen = {recipe.id: recipe.precision for recipe in recipes}
    if suite == "thorough":
        return frozenset(chosen)
    preferred = PREFERRED if "bf16" in chosen.values() else (*PREFERRED, "fp16")
    first = {chosen[name]: name for name in reversed(preferred) if name in chosen}
    return frozenset(first.values())
