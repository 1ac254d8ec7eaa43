"""Whether the layers split evenly into the stages and chunks that a user fixed."""

from __future__ import annotations

from planner.errors import Message, UsageError
from planner.models.shape import ModelShape
from planner.parallelism.search import FixedLayout

ENDS = (0, 2, 3)
"""How many of the model's ends count as layers in interleaved stages: none, embedding and head, a layer that predicts a
second token as well."""


def even_chunks(layers: int, chunks: int) -> bool:
    """Whether layers split into equal chunks, with the model's ends counted or not."""
    return chunks <= layers + 2 and any((layers + ends) % chunks == 0 for ends in ENDS)


def check_chunks(model: ModelShape, fixed: FixedLayout) -> None:
    """Refuse virtual stages that do not split the layers evenly over the pipeline fixed with them, or over any.

    Raises:
        UsageError: they do not; names the nearest numbers that do.
    """
    if fixed.pp == 1 or fixed.vp is None or fixed.vp < 2:
        return
    if fixed.pp is None:
        depths = [depth for depth in range(2, model.layers + 1) if even_chunks(model.layers, depth)]
        message = Message.of("error.vp_layers_any", vp=fixed.vp, layers=model.layers, model=model.name)
    else:
        depths = [fixed.pp]
        message = Message.of("error.vp_layers", vp=fixed.vp, pp=fixed.pp, layers=model.layers, model=model.name)
    if not depths or depths[0] > model.layers or _splits(model.layers, depths, fixed.vp):
        return
    able = [vp for vp in range(2, model.layers // depths[0] + 2) if _splits(model.layers, depths, vp)]
    fewer = max((vp for vp in able if vp < fixed.vp), default=1)
    more = min((vp for vp in able if vp > fixed.vp), default=None)
    near = Message.of("hint.vp_only", vp=fewer)
    raise UsageError(message, hint=near if more is None else Message.of("hint.vp_near", fewer=fewer, more=more))


def _splits(layers: int, depths: list[int], vp: int) -> bool:
    """Whether so many virtual stages split the layers evenly over a pipeline of one of some depths."""
    return any(even_chunks(layers, depth * vp) for depth in depths)
