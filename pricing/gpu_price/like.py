"""A substitute for the price of a GPU that has none: the price of another GPU that the user names, labelled as such."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

from planner.costs.prices import GpuPrice
from planner.errors import Message, UsageError
from planner.evidence import Evidence, EvidenceKind, Gap
from planner.hardware.catalogue import load_gpus
from planner.hardware.gpu import Gpu
from pricing.book.reading import load_book


def priced_or_like(gpu: str, like: str | None, price_of: Callable[[str], GpuPrice]) -> GpuPrice:
    """Return the price of a GPU or, where it has none, the price of the GPU named as a substitute.

    Args:
        gpu: catalogue id.
        like: the substitute GPU; None: no substitute, and the gap names a suitable one.
        price_of: returns the price of a GPU id, with the terms of the question.

    Raises:
        UsageError: raised by `price_of`, for a GPU without a substitute or for the substitute itself.
    """
    try:
        price = price_of(gpu)
    except UsageError:
        if like is None or like == gpu:
            raise
        return _standing_in(gpu, price_of(like))
    if price.usd_per_gpu_h is not None or like is None or like == gpu:
        return price
    stand_in = price_of(like)
    return _standing_in(gpu, stand_in) if stand_in.usd_per_gpu_h is not None else _neither(price, like)


def _neither(price: GpuPrice, like: str) -> GpuPrice:
    """Return an unknown price whose substitute is unknown, too: the gap is the GPU's own and names both."""
    if price.gap is None:
        return price
    why = Message.of("price.like_unpriced", why=price.gap.why, like=like)
    return replace(price, gap=Gap.of("price.missing", why=why))


def _standing_in(gpu: str, price: GpuPrice) -> GpuPrice:
    """Return the price of another GPU as an assumption about this one; an unknown price stays unknown."""
    return replace(
        price,
        gpu=gpu,
        like=price.gpu,
        basis=Message.of("price.basis.like", like=price.gpu, gpu=gpu, basis=price.basis),
        evidence=tuple(_assumed(row, gpu, price.gpu) for row in price.evidence),
        machine_gpus=1,
    )


def _assumed(row: Evidence, gpu: str, like: str) -> Evidence:
    return replace(
        row,
        id=f"{row.id}:for:{gpu}",
        kind=EvidenceKind.ASSUMED,
        what=f"stand-in for {gpu}, which has no price: {like}, {row.what}",
        gpu=gpu,
    )


def nearest_priced(gpu_id: str) -> str | None:
    """Return the most similar GPU with an on-demand price; None where the book has none, or for the user's own CPU.

    GPUs of the same architecture come first, then those nearest by dense BF16 rate, memory and year.
    """
    priced = {row.gpu for row in load_book().rows if row.commitment == "on-demand" and row.seller != "marketplace"}
    candidates = [gpu for gpu in load_gpus().values() if gpu.id in priced and gpu.id != gpu_id]
    target = load_gpus().get(gpu_id)
    if target is None:  # `cpu-local` is not in the catalogue
        return None
    nearest = min(candidates, key=lambda gpu: (gpu.arch != target.arch, _distance(gpu, target)), default=None)
    return None if nearest is None else nearest.id


MEMORY_SHARE, PER_YEAR = 0.5, 0.05
"""Weight of the memory relative to the rate, and of a year between the launches of two GPUs."""


def _distance(gpu: Gpu, other: Gpu) -> float:
    """Return the distance of two GPUs: the weighted log ratios of their rates and memories, and years between them.

    An MI325X has the memory of a B300, but the rate and the year of an H200, whose price is closer to its own.
    """
    rates = [part.peak_flop_per_s.get("bf16") or part.peak_flop_per_s["fp32"] for part in (gpu, other)]
    memories = abs(math.log(gpu.memory_bytes / other.memory_bytes))
    return abs(math.log(rates[0] / rates[1])) + MEMORY_SHARE * memories + PER_YEAR * abs(gpu.year - other.year)
