"""The lower precisions that training is tried in, and whether a device runs them or emulates them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from importlib.util import find_spec

from planner.errors import UsageError
from planner.lazy import dataclass

REAL, MIXED, EMULATED = "real", "mixed", "emulated"
MODES = (REAL, MIXED, EMULATED)
"""How the lowered layers of a run were computed: all by the device, some of them, or none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LowerRecipe:
    """One lower precision, completely specified."""

    id: str
    """As in the planner's policies: `bf16`, `fp16`, `fp8`, `fp8-rowwise` …"""
    precision: str
    """The precision that a user asks a plan for."""
    summary: str
    autocast: str | None = None
    """Type of the autocast region around the forward pass, as torch names it; None: linear layers are scaled."""
    forward_format: str = ""
    """Format of inputs and weights."""
    gradient_format: str = ""
    """Format of the gradients that arrive at a layer's output."""
    scaling: str = ""
    """Key of `formats.scales.SCALINGS`."""
    loss_scaling: bool = False
    real_from: tuple[int, int]
    """Least CUDA compute capability that supports it."""
    real_below: tuple[int, int] | None = None
    """First CUDA compute capability from which on it is no longer supported; None: there is none."""
    on_cpu: bool = False
    """Whether a CPU runs it for real."""
    needs: str | None = None
    """Package without which it is emulated."""

    def mode_on(self, kind: str, capability: tuple[int, int]) -> tuple[str, str | None]:
        """Return `real` or `emulated` on a device, and the reason if it is emulated."""
        if kind == "cpu":
            return (REAL, None) if self.on_cpu else (EMULATED, "a CPU has no such matrix units")
        beyond = self.real_below is not None and capability >= self.real_below
        if capability < self.real_from or beyond:
            wanted, have = (".".join(map(str, pair)) for pair in (self.real_from, capability))
            only = " alone" if self.real_below is not None else ""
            return EMULATED, f"compute capability {wanted}{only} has it, this device has {have}"
        if self.needs is not None and find_spec(self.needs) is None:
            return EMULATED, f"needs {self.needs}, which is not installed"
        return REAL, None


LOWER: tuple[LowerRecipe, ...] = (
    LowerRecipe(
        id="bf16", precision="bf16", summary="FP32 weights, BF16 autocast", autocast="bfloat16", real_from=(8, 0),
        on_cpu=True, forward_format="bf16", gradient_format="bf16",
    ),
    LowerRecipe(
        id="fp16", precision="fp16", summary="FP32 weights, FP16 autocast, dynamic loss scaling", autocast="float16",
        loss_scaling=True, real_from=(7, 0), on_cpu=True, forward_format="fp16", gradient_format="fp16",
    ),
    LowerRecipe(
        id="fp8", precision="fp8", summary="linear layers in FP8, one scale per tensor", forward_format="e4m3",
        gradient_format="e5m2", scaling="tensorwise", real_from=(8, 9),
    ),
    LowerRecipe(
        id="fp8-rowwise", precision="fp8", summary="linear layers in FP8, one scale per row", forward_format="e4m3",
        gradient_format="e4m3", scaling="rowwise", real_from=(9, 0),
    ),
    LowerRecipe(
        id="fp8-blockwise", precision="fp8", summary="linear layers in FP8, scales of 128 and of 128 x 128",
        forward_format="e4m3", gradient_format="e4m3", scaling="blockwise",
        real_from=(9, 0), real_below=(10, 0),
    ),
    LowerRecipe(
        id="mxfp8", precision="mxfp8", summary="linear layers in MXFP8, a power of two per 32 elements",
        forward_format="e4m3", gradient_format="e4m3", scaling="mx", real_from=(10, 0), needs="torchao",
    ),
    LowerRecipe(
        id="nvfp4", precision="nvfp4", summary="linear layers in NVFP4, an E4M3 scale per 16 elements",
        forward_format="e2m1", gradient_format="e2m1", scaling="nvfp4",
        real_from=(10, 0),
    ),
)  # fmt: skip
"""All lower precisions, from the mildest to the harshest."""

USUAL = ("bf16", "fp16", "fp8", "nvfp4")
"""Precisions that are tried if none is named: one of each width."""


def choose_lower(names: Iterable[str]) -> tuple[LowerRecipe, ...]:
    """Return the recipes with the given ids, in the order of the registry; `USUAL` if no name is given.

    Raises:
        UsageError: a name is not the id of a recipe.
    """
    asked = {name.strip().lower() for name in names if name.strip()} or set(USUAL)
    known = {recipe.id for recipe in LOWER} | {recipe.precision for recipe in LOWER}
    for name in sorted(asked - known):
        raise UsageError(f"unknown precision `{name}`", hint=f"use one of {', '.join(recipe.id for recipe in LOWER)}")
    return tuple(recipe for recipe in LOWER if recipe.id in asked)


PLANNED = ("bf16", "fp16", "fp8")
"""Precisions that every plan shows without being asked for."""


def harshest(recipes: Sequence[LowerRecipe], *, named: bool) -> LowerRecipe:
    """Return the recipe in which layers, policies and schedules are tried.

    Args:
        recipes: the recipes of a run, from the mildest to the harshest.
        named: whether the user named them. If not, recipes harsher than plans offer by default are passed over, since
            no plan could be mixed from a policy for them.
    """
    planned = [recipe for recipe in recipes if recipe.precision in PLANNED]
    return recipes[-1] if named or not planned else planned[-1]


def lower_by_id(name: str) -> LowerRecipe:
    """Return the recipe with this id.

    Raises:
        KeyError: no recipe has this id (a bug in the caller).
    """
    return {recipe.id: recipe for recipe in LOWER}[name]
