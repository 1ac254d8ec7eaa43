"""From which sizes on narrow products pay: the gain of FP8 (MXFP8, NVFP4) over BF16 by shape, casts included."""

from __future__ import annotations

import numpy as np

from planner.kernels.surface import Floats, Surface, Value, product_s
from planner.lazy import dataclass

STRONG_GAIN = 1.4
"""A gain that is worth the care that narrow types take."""

HIDDEN_SIZES = np.arange(512.0, 16385.0, 256.0)
"""Sizes of square weights among which the smallest that pays is looked for."""

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
    """Smallest square weight that gains anything with as many tokens; None: none does."""
    strong_from_hidden: float | None
    """The same for a gain of `STRONG_GAIN`."""
    pays_from_tokens: float | None
    """Fewest tokens of a micro-batch at which these weights gain anything; None: no number does."""


def narrow_gain(types: NarrowTypes, m: float, n: float, k: float) -> NarrowGain:
    """Gain at a shape, and the sizes from which on there is one.

    Args:
        types: the surfaces and the cost of casts.
        m: tokens of a micro-batch.
        n: output features of the weight on one GPU.
        k: input features.
    """
    by_hidden, by_tokens = types.gain(m, HIDDEN_SIZES, HIDDEN_SIZES), types.gain(TOKENS, n, k)
    return NarrowGain(
        m=m, n=n, k=k, gain_ratio=float(types.gain(m, n, k)),
        pays_from_hidden=_from(HIDDEN_SIZES, np.asarray(by_hidden), 1.0),
        strong_from_hidden=_from(HIDDEN_SIZES, np.asarray(by_hidden), STRONG_GAIN),
        pays_from_tokens=_from(TOKENS, np.asarray(by_tokens), 1.0),
    )  # fmt: skip


def _from(sizes: Floats, gains: Floats, wanted: float) -> float | None:
    """The smallest size that gains as much as wanted, and keeps it but for a dip; None where there is none."""
    least_after = np.minimum.accumulate(gains[::-1])[::-1]
    kept = (gains >= wanted) & (least_after >= wanted * (1.0 - DIP))
    return float(sizes[np.argmax(kept)]) if kept.any() else None
