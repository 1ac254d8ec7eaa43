"""Check that the layers split evenly into the stages and chunks that a user fixed."""

from __future__ import annotations

import numpy as np

from planner.errors import Message, UsageError
from planner.models.shape import ModelShape
from planner.parallelism.chunks import even_chunks
from planner.parallelism.layout import Ints
from planner.parallelism.search import FixedLayout


def check_chunks(model: ModelShape, fixed: FixedLayout) -> None:
    """Reject virtual stages that do not split the layers evenly over the fixed pipeline, or over any if none is fixed.

    Raises:
        UsageError: the layers do not split evenly; the hint names the nearest numbers that work.
    """
    if fixed.pp == 1 or fixed.vp is None or fixed.vp < 2:
        return
    if fixed.pp is None:
        all_depths = np.arange(2, model.layers + 1)
        depths = all_depths[even_chunks(model.layers, all_depths)]
        message = Message.of("error.vp_layers_any", vp=fixed.vp, layers=model.layers, model=model.name)
    else:
        depths = np.array([fixed.pp])
        message = Message.of("error.vp_layers", vp=fixed.vp, pp=fixed.pp, layers=model.layers, model=model.name)
    if not len(depths) or depths[0] > model.layers or _splits(model.layers, depths, fixed.vp):
        return
    able = [vp for vp in range(2, model.layers // int(depths[0]) + 2) if _splits(model.layers, depths, vp)]
    fewer = max((vp for vp in able if vp < fixed.vp), default=1)
    more = min((vp for vp in able if vp > fixed.vp), default=None)
    near = Message.of("hint.vp_only", vp=fewer)
    raise UsageError(message, hint=near if more is None else Message.of("hint.vp_near", fewer=fewer, more=more))


def _splits(layers: int, depths: Ints, vp: int) -> bool:
    """Whether `vp` virtual stages split the layers evenly over a pipeline of any of the given depths."""
    return bool(even_chunks(layers, depths * vp).any())
