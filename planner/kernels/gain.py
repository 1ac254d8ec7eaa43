"""From which sizes on narrow products pay: the gain of FP8 (MXFP8, NVFP4) over BF16 by shape, casts included."""

from __future__ import annotations

import numpy as np

from planner.kernels.surface import Floats, Surface, Value, product_s
from planner.lazy import dataclass

STRONG_GAIN = 1.4
"""A gain that is worth the care that narrow types take."""

HIDDEN_SIZES = np.arange(512.0, 16385.0, 256.0)
"""Hidden sizes among which the smallest that pays is looked for."""

TOKENS = np.arange(64.0, 16385.0, 64.0)
"""Tokens of a micro-batch among which the fewest that pay are looked for."""

DIP = 0.05
"""How far a gain may fall below what is wanted at a larger size: kernels fill a GPU unevenly."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NarrowTypes:
    """Two types of one GPU and what casting costs."""

    wide: Surface
    """BF16."""
    narrow: Surface
    """FP8 or narrower."""
    cast_s_per_element: float
    """Cast of an operand, per element of the three tensors of a product."""

    def gain(self, m: Value, n: Value, k: Value) -> Value:
        """Time of a linear layer forward and backward in BF16, over that in the narrow type with its casts."""
        cast_s = (m * k + m * n + n * k) * self.cast_s_per_element
        return _layer_s(self.wide, m, n, k) / (_layer_s(self.narrow, m, n, k) + cast_s)


def _layer_s(surface: Surface, m: Value, n: Value, k: Value) -> Value:
    """A product and its two gradients."""
    return product_s(surface, m, n, k) + product_s(surface, m, k, n) + product_s(surface, n, k, m)


@dataclass(frozen=True, slots=True, kw_only=True)
class NarrowGain:
    """How far a question is from where narrow products pay."""

    m: float
    """Tokens of a micro-batch at the product that takes longest."""
    n: float
    k: float
    gain_ratio: float
    """There: time in BF16 over time in the narrow type, casts included."""
    pays_from_hidden: float | None
    """Smallest hidden size at which this product, scaled with it, gains anything with as many tokens; where it does not
    gain here, the smallest larger one, and None: none does."""
    strong_from_hidden: float | None
    """The same for a gain of `STRONG_GAIN`."""
    pays_from_tokens: float | None
    """Fewest tokens of a micro-batch at which these weights gain anything; where they do not gain here, the fewest that
    are more, and None: no such number does."""
    hidden: float | None = None
    """Hidden size of the model, with which the product is scaled."""


def narrow_gain(types: NarrowTypes, m: float, n: float, k: float, hidden: float) -> NarrowGain:
    """Gain at a shape, and the sizes from which on there is one.

    All of these speak of one product: that of the shape, with both sides of its weight scaled as the hidden size.

    Args:
        types: the surfaces and the cost of casts.
        m: tokens of a micro-batch.
        n: output features of the weight on one GPU.
        k: input features.
        hidden: size of the model's hidden state.
    """
    sizes, tokens = np.union1d(HIDDEN_SIZES, hidden), np.union1d(TOKENS, m)
    by_hidden = np.asarray(types.gain(m, n * sizes / hidden, k * sizes / hidden))
    by_tokens = np.asarray(types.gain(tokens, n, k))
    return NarrowGain(
        m=m, n=n, k=k, hidden=hidden, gain_ratio=float(types.gain(m, n, k)),
        pays_from_hidden=_from(sizes, by_hidden, 1.0, hidden),
        strong_from_hidden=_from(sizes, by_hidden, STRONG_GAIN, hidden),
        pays_from_tokens=_from(tokens, by_tokens, 1.0, m),
    )  # fmt: skip


def _from(sizes: Floats, gains: Floats, wanted: float, here: float) -> float | None:
    """The smallest size that gains as much as wanted, and keeps it but for a dip; None where there is none.

    Where it is gained here, it is kept up to here; where it is not, larger sizes alone are looked at: what is said of
    other sizes never denies what is said of this one.
    """
    gained_here = gains[np.searchsorted(sizes, here)] >= wanted
    asked = sizes <= here if gained_here else sizes > here
    sizes, gains = sizes[asked], gains[asked]
    least_after = np.minimum.accumulate(gains[::-1])[::-1]
    kept = (gains >= wanted) & (least_after >= wanted * (1.0 - DIP))
    return float(sizes[np.argmax(kept)]) if kept.any() else None
