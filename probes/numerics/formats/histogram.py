"""Histograms of magnitudes, and what any format at any power-of-two scale makes of them.

A bin is an exponent and the first four bits behind the point. The limits of FP8 and FP4 lie on its edges, so that the
shares that follow are exact there; those of FP16 and BF16 lie on them but for half a unit in the last place at the top.
"""

from __future__ import annotations

from math import ceil, frexp
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from planner.lazy import dataclass
from probes.numerics.formats.elements import ElementFormat

if TYPE_CHECKING:
    import torch

SUB_BITS = 4
SUB_BINS = 2**SUB_BITS
"""Bins of an octave."""
_SHIFT = 23 - SUB_BITS
BIAS = 127
BINS = 256 * SUB_BINS
"""One for each exponent of FP32 and four bits; the last octave holds infinities and NaN."""
SCALES_LOG2 = range(-40, 81)
"""Scales that are tried for one that would help."""

Counts = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Magnitudes:
    """How many values have which magnitude."""

    counts: Counts
    """`[BINS]`."""
    zeros: int
    ties: Counts
    """`[256]`, by biased exponent: exact powers of two, which a tie at the flushing limit concerns."""

    def __add__(self, other: Magnitudes) -> Magnitudes:
        """Both together."""
        return Magnitudes(
            counts=self.counts + other.counts, zeros=self.zeros + other.zeros, ties=self.ties + other.ties
        )

    @property
    def total(self) -> int:
        """All values, zeros and what is not finite included."""
        return int(self.counts.sum()) + self.zeros

    @property
    def not_finite(self) -> int:
        """Infinities and NaN."""
        return int(self.counts[-SUB_BINS:].sum())

    def octaves(self) -> dict[int, int]:
        """Exponent to count, of finite values that are not zero; exponents that do not occur are left out."""
        by_octave = self.counts.reshape(256, SUB_BINS).sum(axis=1)[:-1]
        return {int(index) - BIAS: int(by_octave[index]) for index in np.flatnonzero(by_octave)}

    @property
    def nonzero(self) -> int:
        """Values that are not zero by themselves: what a format can make zero, or cannot hold."""
        return int(self.counts.sum())

    def flushed_ratio(self, element: ElementFormat, scale_log2: int = 0) -> float:
        """Share of the values that are not zero by themselves which a format makes zero after the scale.

        Args:
            element: the format.
            scale_log2: the values are multiplied by 2 to this power first.
        """
        if not self.nonzero:
            return 0.0
        limit = frexp(element.flushed_up_to)[1] - 1 - scale_log2 + BIAS  # biased exponent of the limit, a power of two
        if limit < 0:
            return 0.0
        below = int(self.counts[: min(limit, 255) * SUB_BINS].sum())
        return (below + (int(self.ties[limit]) if limit < 255 else 0)) / self.nonzero

    def saturated_ratio(self, element: ElementFormat, scale_log2: int = 0) -> float:
        """Share of the values that are not zero which lie beyond the format after the scale; infinities and NaN do."""
        if not self.nonzero:
            return 0.0
        first = _bin_of(element.beyond_from) - scale_log2 * SUB_BINS
        first = min(max(first, 0), BINS - SUB_BINS)
        return int(self.counts[first:].sum()) / self.nonzero

    def best_scale_log2(self, element: ElementFormat, headroom: int = 0) -> int | None:
        """The power of two that flushes least without saturating; the least such one. None where nothing is finite.

        Args:
            element: the format.
            headroom: octaves that have to stay free above the largest value seen, for those that were not looked at.
        """
        candidates = [power for power in SCALES_LOG2 if self.saturated_ratio(element, power + headroom) == 0.0]
        if not candidates or not self.nonzero:
            return None
        flushed = [self.flushed_ratio(element, power) for power in candidates]
        least = min(flushed)
        best = [power for power, share in zip(candidates, flushed, strict=True) if share == least]
        return int(min(best, key=abs))


def _bin_of(value: float) -> int:
    """The first bin that holds no value below this one."""
    mantissa, exponent = frexp(value)
    return int((exponent - 1 + BIAS) * SUB_BINS + ceil((2.0 * mantissa - 1.0) * SUB_BINS))


def nothing() -> Magnitudes:
    """The histogram of no values."""
    return Magnitudes(counts=np.zeros(BINS, dtype=np.int64), zeros=0, ties=np.zeros(256, dtype=np.int64))


def magnitudes(x: torch.Tensor) -> Magnitudes:
    """The histogram of a tensor of any shape and floating type."""
    import torch

    bits = x.detach().reshape(-1).to(torch.float32).view(torch.int32) & 0x7FFFFFFF
    bits = bits[bits != 0]
    counts = torch.bincount(bits >> _SHIFT, minlength=BINS)
    powers = bits[(bits & 0x7FFFFF) == 0] >> 23
    return Magnitudes(
        counts=counts.cpu().numpy().astype(np.int64),
        zeros=x.numel() - int(bits.numel()),
        ties=torch.bincount(powers, minlength=256).cpu().numpy().astype(np.int64),
    )


def swallowed_counts(weight: torch.Tensor, update: torch.Tensor, element: ElementFormat) -> tuple[int, int]:
    """Updates that leave a weight held in a format as it is, and all updates that are not zero by themselves.

    An update below half a unit in the last place does: the sum rounds back (Gupta et al., arXiv 1502.02551).

    Args:
        weight: before the update.
        update: what is added, of the same shape.
        element: the format that weights are held in.
    """
    from probes.numerics.formats.elements import rounded

    held = rounded(weight.detach().float(), element)
    moves = update != 0
    kept = rounded(held + update.detach().float(), element) == held
    return int((kept & moves).sum()), int(moves.sum())
