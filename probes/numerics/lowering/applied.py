"""Whether a precision reaches a model at all, counted over one forward pass before any result is attributed to it.

Autocast skips float64 tensors and whatever is outside its reach, and scaled recipes lower only some kinds of layers. A
model in which they reach nothing trains in FP32 whatever the label, and would be found equivalent to FP32.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode

from planner.lazy import dataclass
from probes.numerics.lowering.recipes import LowerRecipe
from probes.numerics.lowering.switches import Switches

PRODUCTS = ("mm", "conv", "dot_product", "rnn", "lstm", "gru", "linear")
"""Parts of the names of operations that multiply matrices (ATen's native_functions.yaml)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Applied:
    """How much of a model a precision reaches."""

    lowered_matrices: int
    """Parameters of two or more dimensions that a product read in the lower precision."""
    matrices: int
    """All trained parameters of two or more dimensions."""
    why_not_applied: str | None
    """Why no product ran in the lower precision; None if one did."""


def applied(model: nn.Module, switches: Switches, recipe: LowerRecipe, forward: Callable[[], object]) -> Applied:
    """Count what one forward pass lowers.

    Args:
        model: turned to the recipe already.
        switches: the switches of this model.
        recipe: the recipe that the model is turned to.
        forward: one forward pass, in the recipe's region.
    """
    matrices = {name: weight for name, weight in model.named_parameters() if weight.requires_grad and weight.dim() > 1}
    switches.reset_counts()
    if recipe.autocast is None:
        forward()
        lowered = {
            id(weight)
            for name in switches.lowered()
            for weight in switches.layers[name].parameters(recurse=False)
            if weight.requires_grad and weight.dim() > 1
        }
        none = "the recipe lowers nn.Linear and nn.Conv2d, except routers and the last layer; the model has no others"
        why = None if switches.lowered() else none
        return Applied(lowered_matrices=len(lowered), matrices=len(matrices), why_not_applied=why)
    with _Casts(matrices, getattr(torch, recipe.autocast)) as seen:
        forward()
    why = None if seen.products else f"no matrix product ran in {recipe.autocast}: autocast reaches none of them"
    return Applied(lowered_matrices=len(seen.cast), matrices=len(matrices), why_not_applied=why)


class _Casts(TorchDispatchMode):  # type: ignore[misc] # torch is untyped here
    """Observes every operation below autocast: which weights are cast to a type, and how many products run in it."""

    def __init__(self, weights: Mapping[str, torch.Tensor], dtype: torch.dtype) -> None:
        super().__init__()
        self._names = {weight.untyped_storage().data_ptr(): name for name, weight in weights.items()}
        self._dtype = dtype
        self.cast: set[str] = set()
        """Names of the weights that were cast."""
        self.products = 0

    def __torch_dispatch__(self, operation: Any, types: Any, arguments: Any = (), keywords: Any = None) -> Any:
        """Run an operation and count it."""
        result = operation(*arguments, **(keywords or {}))
        tensors = [value for value in arguments if isinstance(value, torch.Tensor)]
        if not tensors:
            return result
        name = str(operation).split(".")[1]
        if name == "_to_copy":
            weight = self._names.get(tensors[0].untyped_storage().data_ptr())
            if weight is not None and result.dtype == self._dtype:
                self.cast.add(weight)
        elif tensors[0].dtype == self._dtype and any(part in name for part in PRODUCTS):
            self.products += 1
        return result
