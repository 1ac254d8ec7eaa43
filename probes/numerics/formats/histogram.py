"""Histograms of magnitudes, and the effect on them of any format at any power-of-two scale.

A bin is an exponent and the first four mantissa bits. The limits of FP8 and FP4 are bin edges, so the shares derived
from the bins are exact; the limits of FP16 and BF16 are bin edges except for half a unit in the last place at the top.
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
"""Bins per octave."""
_SHIFT = 23 - SUB_BITS
BIAS = 127
BINS = 256 * SUB_BINS
"""One bin per exponent of FP32 and four mantissa bits; the last octave holds infinities and NaN."""
SCALES_LOG2 = range(-40, 81)
"""Log2 of the scales among which the best one is sought."""

Counts = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Magnitudes:
    """Number of values of each magnitude."""

    counts: Counts
    """Values by bin, `[BINS]`."""
    zeros: int
    ties: Counts
    """Exact powers of two by biased exponent, `[256]`; ties at the flushing limit are among them."""

    def __add__(self, other: Magnitudes) -> Magnitudes:
        """Return the histogram of both together."""
        return Magnitudes(
            counts=self.counts + other.counts, zeros=self.zeros + other.zeros, ties=self.ties + other.ties
        )

    @property
    def total(self) -> int:
        """All values, including zeros and values that are not finite."""
        return int(self.counts.sum()) + self.zeros

    @property
    def not_finite(self) -> int:
        """Infinities and NaN."""
        return int(self.counts[-SUB_BINS:].sum())

    def octaves(self) -> dict[int, int]:
        """Return the count of finite, non-zero values by exponent; exponents that do not occur are left out."""
        by_octave = self.counts.reshape(256, SUB_BINS).sum(axis=1)[:-1]
        return {int(index) - BIAS: int(by_octave[index]) for index in np.flatnonzero(by_octave)}

    @property
    def nonzero(self) -> int:
        """Values that are not zero to begin with; a format may flush them to zero or be unable to hold them."""
        return int(self.counts.sum())

    def flushed_ratio(self, element: ElementFormat, scale_log2: int = 0) -> float:
        """Return the share of the values not zero to begin with that a format flushes to zero after scaling.

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
        """Return the share of non-zero values beyond the format's range after scaling, with infinities and NaN."""
        if not self.nonzero:
            return 0.0
        first = _bin_of(element.beyond_from) - scale_log2 * SUB_BINS
        first = min(max(first, 0), BINS - SUB_BINS)
        return int(self.counts[first:].sum()) / self.nonzero

    def best_scale_log2(self, element: ElementFormat, headroom: int = 0) -> int | None:
        """Return log2 of the scale that flushes least without saturating; of several, the one nearest to a scale of 1.

        None if every scale saturates, as with any infinity or NaN, or if there is no non-zero value.

        Args:
            element: the format.
            headroom: octaves that must stay free above the largest value seen, for values that were not examined.
        """
        candidates = [power for power in SCALES_LOG2 if self.saturated_ratio(element, power + headroom) == 0.0]
        if not candidates or not self.nonzero:
            return None
        flushed = [self.flushed_ratio(element, power) for power in candidates]
        least = min(flushed)
        best = [power for power, share in zip(candidates, flushed, strict=True) if share == least]
        return int(min(best, key=abs))


def _bin_of(value: float) -> int:
    """Return the first bin that holds no value below this one."""
    mantissa, exponent = frexp(value)
    return int((exponent - 1 + BIAS) * SUB_BINS + ceil((2.0 * mantissa - 1.0) * SUB_BINS))


def empty_histogram() -> Magnitudes:
    """Return the histogram of no values."""
    return Magnitudes(counts=np.zeros(BINS, dtype=np.int64), zeros=0, ties=np.zeros(256, dtype=np.int64))


def magnitudes(x: torch.Tensor) -> Magnitudes:
    """Return the histogram of a tensor of any shape and floating-point type."""
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
    """Count the updates that leave a weight held in a format unchanged, and all updates that are not zero.

    An update below half a unit in the last place is swallowed: the sum rounds back (Gupta et al., arXiv 1502.02551).

    Args:
        weight: value before the update.
        update: value that is added, of the same shape.
        element: the format that the weights are held in.
    """
    from probes.numerics.formats.elements import rounded

    held = rounded(weight.detach().float(), element)
    moves = update != 0
    kept = rounded(held + update.detach().float(), element) == held
    return int((kept & moves).sum()), int(moves.sum())
