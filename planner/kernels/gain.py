"""The sizes from which narrow products pay off: the gain of FP8 (MXFP8, NVFP4) over BF16 by shape, including casts."""

from __future__ import annotations

import numpy as np

from planner.kernels.surface import Floats, Surface, Value, product_s
from planner.lazy import dataclass

STRONG_GAIN = 1.4
"""A speed-up that justifies the extra care that narrow types need."""

HIDDEN_SIZES = np.arange(512.0, 16385.0, 256.0)
"""Hidden sizes among which the smallest that pays off is searched."""

TOKENS = np.arange(64.0, 16385.0, 64.0)
"""Tokens per micro-batch among which the smallest number that pays off is searched."""

DIP = 0.05
"""Fraction by which the gain may fall below the wanted gain at a larger size, since kernels fill a GPU unevenly."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NarrowTypes:
    """Surfaces of a wide and a narrow type on one GPU, with the cost of casts."""

    wide: Surface
    """BF16."""
    narrow: Surface
    """FP8 or narrower."""
    cast_s_per_element: float
    """Seconds of casting, per element of the three tensors of a product."""

    def gain(self, m: Value, n: Value, k: Value) -> Value:
        """Time of a linear layer, forward and backward, in BF16 over its time in the narrow type including casts."""
        cast_s = (m * k + m * n + n * k) * self.cast_s_per_element
        return _layer_s(self.wide, m, n, k) / (_layer_s(self.narrow, m, n, k) + cast_s)


def _layer_s(surface: Surface, m: Value, n: Value, k: Value) -> Value:
    """Seconds of a product and its two gradients."""
    return product_s(surface, m, n, k) + product_s(surface, m, k, n) + product_s(surface, n, k, m)


@dataclass(frozen=True, slots=True, kw_only=True)
class NarrowGain:
    """How far a question is from the sizes at which narrow products pay off."""

    m: float
    """Tokens per micro-batch at the product that takes longest."""
    n: float
    k: float
    gain_ratio: float
    """Gain of that product: its time in BF16 over its time in the narrow type, including casts."""
    pays_from_hidden: float | None
    """Smallest hidden size at which this product, scaled with it, gains anything with the same number of tokens; if the
    product does not gain at its own size, the smallest larger hidden size; None if there is none."""
    strong_from_hidden: float | None
    """As `pays_from_hidden`, for a gain of at least `STRONG_GAIN`."""
    pays_from_tokens: float | None
    """Fewest tokens per micro-batch at which these weights gain anything; if they do not gain at the product's own
    number, the smallest larger number; None if there is none."""
    hidden: float | None = None
    """Hidden size of the model, with which the product is scaled."""


def narrow_gain(types: NarrowTypes, m: float, n: float, k: float, hidden: float) -> NarrowGain:
    """Gain at a shape, and the sizes from which there is a gain.

    All sizes refer to the product of this shape; both dimensions of its weight are scaled with the hidden size.

    Args:
        types: the surfaces and the cost of casts.
        m: tokens per micro-batch.
        n: output features of the weight on one GPU.
        k: input features.
        hidden: size of the model's hidden state.
    """
    sizes, tokens = _with_size(HIDDEN_SIZES, hidden), _with_size(TOKENS, m)
    by_hidden = np.asarray(types.gain(m, n * sizes / hidden, k * sizes / hidden))
    by_tokens = np.asarray(types.gain(tokens, n, k))
    return NarrowGain(
        m=m, n=n, k=k, hidden=hidden, gain_ratio=float(types.gain(m, n, k)),
        pays_from_hidden=_from(sizes, by_hidden, 1.0, hidden),
        strong_from_hidden=_from(sizes, by_hidden, STRONG_GAIN, hidden),
        pays_from_tokens=_from(tokens, by_tokens, 1.0, m),
    )  # fmt: skip


def _with_size(sizes: Floats, own_size: float) -> Floats:
    """Rising sizes with one more among them; `np.union1d` would import `numpy.ma`, which takes ten milliseconds."""
    return np.sort(np.append(sizes[sizes != own_size], own_size))


def _from(sizes: Floats, gains: Floats, wanted: float, own_size: float) -> float | None:
    """The smallest size with the wanted gain that keeps it, except for a dip, at larger sizes; None if there is none.

    If the gain is reached at `own_size`, only sizes up to it are considered; if not, only larger sizes. The result
    therefore never contradicts the gain at `own_size`.
    """
    gains_at_own_size = gains[np.searchsorted(sizes, own_size)] >= wanted
    candidates = sizes <= own_size if gains_at_own_size else sizes > own_size
    sizes, gains = sizes[candidates], gains[candidates]
    least_after = np.minimum.accumulate(gains[::-1])[::-1]
    kept = (gains >= wanted) & (least_after >= wanted * (1.0 - DIP))
    return float(sizes[np.argmax(kept)]) if kept.any() else None
