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
    """Refuse virtual stages that do not split the layers evenly over the pipeline that is fixed with them.

    Raises:
        UsageError: they do not; names the nearest numbers that do.
    """
    if fixed.pp is None or fixed.pp < 2 or fixed.vp is None or fixed.vp < 2:
        return
    if fixed.pp > model.layers or even_chunks(model.layers, fixed.pp * fixed.vp):
        return
    able = [vp for vp in range(2, model.layers // fixed.pp + 2) if even_chunks(model.layers, fixed.pp * vp)]
    fewer = max((vp for vp in able if vp < fixed.vp), default=1)
    more = min((vp for vp in able if vp > fixed.vp), default=None)
    raise UsageError(
        Message.of("error.vp_layers", vp=fixed.vp, pp=fixed.pp, layers=model.layers, model=model.name),
        hint=Message.of("hint.vp_only", vp=fewer)
        if more is None
        else Message.of("hint.vp_near", fewer=fewer, more=more),
    )
