"""Switches on the layers of a model: each layer can be turned to a lower precision and back between two steps."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any

import torch
from torch import nn

from probes.numerics.lowering import products
from probes.numerics.lowering.recipes import LowerRecipe

ROUTER = re.compile(r"router|gate$|gating", re.IGNORECASE)
NORM = re.compile(r"norm|\bln", re.IGNORECASE)
WHOLE = "model"
"""Name of the layer of a model that is itself a single layer."""
MULTIPLYING = (nn.Linear, nn.Conv1d, nn.Conv2d, nn.Conv3d)
"""Layers that autocast runs in its type. It leaves embedding tables and norms in FP32; their values are rounded."""


class Switches:
    """The layers of a model that hold parameters of their own, each in FP32 until it is turned."""

    def __init__(self, model: nn.Module, device_kind: str = "cpu", real: Iterable[str] = ()) -> None:
        """Put a switch on every layer.

        Args:
            model: the `forward` of its layers is replaced, in place.
            device_kind: `cpu` or `cuda`, for autocast.
            real: ids of recipes that run on the device's own matrix units.
        """
        self._kind = device_kind
        self._real = frozenset(real)
        self._now: dict[str, LowerRecipe] = {}
        self._ways: dict[str, set[bool]] = {}
        self.region: LowerRecipe | None = None
        """The recipe whose autocast region surrounds the whole model; used only for counting layers."""
        self.layers: dict[str, nn.Module] = {}
        """Layers by name, in the order of the model."""
        for name, module in model.named_modules():
            is_single_layer = module is model and not any(True for _ in model.children())
            if (name or is_single_layer) and any(True for _ in module.parameters(recurse=False)):
                self.layers[name or WHOLE] = module
                module.forward = partial(self._forward, name or WHOLE, module, module.forward)

    def turn(self, recipes: Mapping[str, LowerRecipe]) -> None:
        """Turn these layers to these recipes, and all others to FP32."""
        self._now = dict(recipes)

    def policy(self, recipe: LowerRecipe) -> dict[str, LowerRecipe]:
        """Return the layers that the recipe lowers by itself: linear and `Conv2d`, without routers and the last."""
        kinds = kinds_of(self.layers)
        return {name: recipe for name, kind in kinds.items() if kind in ("linear", "convolution", "first")
                and isinstance(self.layers[name], nn.Linear | nn.Conv2d)}  # fmt: skip

    def reset_counts(self) -> None:
        """Reset the counts of how layers ran."""
        self._ways = {}

    def counted(self) -> tuple[int, int]:
        """Return the number of layers that always ran on the device's own units, and of all lowered layers."""
        return sum(ways == {True} for ways in self._ways.values()), len(self._ways)

    def lowered(self) -> tuple[str, ...]:
        """Return the names of the layers that ran in a lower precision."""
        return tuple(name for name in self.layers if name in self._ways)

    def _note(self, name: str, *, real: bool) -> None:
        self._ways.setdefault(name, set()).add(real)

    def _forward(
        self, name: str, layer: nn.Module, forward: Callable[..., Any], *arguments: Any, **keywords: Any
    ) -> Any:
        recipe = self._now.get(name)
        if recipe is None:
            y = forward(*arguments, **keywords)
            if self.region is not None and isinstance(layer, MULTIPLYING) and _is_in(y, self.region):
                self._note(name, real=self.region.id in self._real)
            return y
        if recipe.autocast is not None and isinstance(layer, MULTIPLYING):
            with torch.autocast(self._kind, dtype=getattr(torch, recipe.autocast)):
                y = forward(*arguments, **keywords)
            if _is_in(y, recipe):
                self._note(name, real=recipe.id in self._real)
            return y.float()
        if type(layer) is nn.Linear and not keywords:
            x = arguments[0]
            on_units = recipe.id in self._real and products.fits_matrix_units(layer, x, recipe)
            self._note(name, real=on_units)
            return (products.on_matrix_units if on_units else products.linear)(layer, x, recipe)
        self._note(name, real=False)
        if type(layer) is nn.Conv2d and not keywords:
            return products.convolution(layer, arguments[0], recipe)
        if type(layer) is nn.Embedding and not keywords:
            return products.embedding(layer, arguments[0], recipe)
        return products.other(forward, arguments, keywords, recipe)


def _is_in(y: object, recipe: LowerRecipe) -> bool:
    """Return whether a result of autocast is in its type; it skips float64, and regions where the model disables it."""
    return isinstance(y, torch.Tensor) and y.dtype == getattr(torch, str(recipe.autocast))


def kinds_of(layers: Mapping[str, nn.Module]) -> dict[str, str]:
    """Return each layer's kind: `embedding`, `norm`, `router`, `first`, `last`, `linear`, `convolution` or `other`.

    `first` and `last` are the first and last of several linear layers and convolutions, routers excepted; `first` is
    given only in a model without an embedding.
    """
    kinds = {name: _kind_of(name, layer) for name, layer in layers.items()}
    multiplying = [name for name, kind in kinds.items() if kind in ("linear", "convolution")]
    if len(multiplying) > 1:
        if not any(kind == "embedding" for kind in kinds.values()):
            kinds[multiplying[0]] = "first"
        kinds[multiplying[-1]] = "last"
    return kinds


def _kind_of(name: str, layer: nn.Module) -> str:
    if isinstance(layer, nn.Embedding):
        return "embedding"
    if NORM.search(type(layer).__name__):
        return "norm"
    if isinstance(layer, nn.Linear):
        return "router" if ROUTER.search(name.rsplit(".", 1)[-1]) else "linear"
    if isinstance(layer, MULTIPLYING):
        return "convolution"
    return "other"
