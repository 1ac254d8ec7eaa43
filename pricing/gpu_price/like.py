"""A stand-in for the price of a GPU that has none: the price of another GPU that the user names, labelled as such."""

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
    """The price of a GPU; where it has none, that of the GPU which is to stand in for it.

    Args:
        gpu: catalogue id.
        like: the GPU that stands in; None: no stand-in, and the gap names one that could.
        price_of: the price of a GPU id, as the question asks for it.

    Raises:
        UsageError: what `price_of` raises, for a GPU without a stand-in or for the stand-in itself.
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
    """A price that is unknown, and so is that of its stand-in: the gap is the GPU's own and names both."""
    if price.gap is None:
        return price
    why = Message.of("price.like_unpriced", why=price.gap.why, like=like)
    return replace(price, gap=Gap.of("price.missing", why=why))


def _standing_in(gpu: str, price: GpuPrice) -> GpuPrice:
    """The price of another GPU as an assumption about this one; unknown stays unknown."""
    return replace(
        price,
        gpu=gpu,
        like=price.gpu,
        basis=Message.of("price.basis.like", like=price.gpu, gpu=gpu, basis=price.basis),
        evidence=tuple(_assumed(row, gpu, price.gpu) for row in price.evidence),
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
    """The GPU with an on-demand price that is nearest in kind; None where the book has none, or for a CPU of one's own.

    One of the same architecture where there is one, then by dense BF16 rate, memory and year.
    """
    priced = {row.gpu for row in load_book().rows if row.commitment == "on-demand" and row.seller != "marketplace"}
    candidates = [gpu for gpu in load_gpus().values() if gpu.id in priced and gpu.id != gpu_id]
    target = load_gpus().get(gpu_id)
    if target is None:  # `cpu-local` stands in no catalogue
        return None
    nearest = min(candidates, key=lambda gpu: (gpu.arch != target.arch, _distance(gpu, target)), default=None)
    return None if nearest is None else nearest.id


MEMORY_SHARE, PER_YEAR = 0.5, 0.05
"""What memory counts for beside the rate, and a year between the launches of two GPUs."""


def _distance(gpu: Gpu, other: Gpu) -> float:
    """Of two GPUs: the ratios of their rates and of their memories, as logarithms, and the years between them.

    An MI325X has the memory of a B300, but the rate and the year of an H200, whose price it is nearer to.
    """
    rates = [part.peak_flop_per_s.get("bf16") or part.peak_flop_per_s["fp32"] for part in (gpu, other)]
    memories = abs(math.log(gpu.memory_bytes / other.memory_bytes))
    return abs(math.log(rates[0] / rates[1])) + MEMORY_SHARE * memories + PER_YEAR * abs(gpu.year - other.year)
