"""How long the examples of a data set are, and what padding and packing make of them.

Lengths are taken as log-normal, cut at the longest sequence, or as they stand in a file. A batch that is padded costs
as many tokens as its longest example has, times its examples; a packed one costs the tokens alone.
"""

from __future__ import annotations

import math
from statistics import NormalDist

import numpy as np
import numpy.typing as npt

from planner.errors import UsageError
from planner.lazy import dataclass

Floats = npt.NDArray[np.float64]

SPREAD = 0.8
"""Standard deviation of the logarithm of the lengths where only their mean is known: assumed. Half of the examples then
lie within a factor of 1.7 of the median."""

SAMPLES = 999
"""Quantiles that stand for a distribution."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lengths:
    """Lengths of examples in tokens, as quantiles."""

    quantiles: tuple[float, ...]
    """Lengths of examples in rising order, each as likely as any other."""
    mean_tokens: float
    """Their mean."""

    @classmethod
    def around(cls, mean_tokens: float, most_tokens: int, spread: float = SPREAD) -> Lengths:
        """Log-normal lengths, cut at `most_tokens`, which have a mean once they are cut.

        Args:
            mean_tokens: mean of the lengths as cut.
            most_tokens: the longest sequence that is trained on.
            spread: standard deviation of the logarithm before the cut.

        Raises:
            UsageError: the mean is not between 1 and the longest sequence.
        """
        if not 1.0 <= mean_tokens <= most_tokens:
            raise UsageError(
                f"a mean of {mean_tokens:g} tokens is not between 1 and the {most_tokens} of the longest sequence",
                hint="give the mean length of the examples after they are cut at the longest sequence",
            )
        normal = NormalDist()
        scores = np.array([normal.inv_cdf((i + 0.5) / SAMPLES) for i in range(SAMPLES)])
        shape, low, high = np.exp(spread * scores), 0.0, most_tokens * math.exp(8.0 * spread)
        for _ in range(80):  # the mean rises with the median: halve until it is met
            median = 0.5 * (low + high)
            low, high = (median, high) if _cut(median * shape, most_tokens).mean() < mean_tokens else (low, median)
        return cls._of_quantiles(_cut(high * shape, most_tokens))

    @classmethod
    def of(cls, lengths: Floats, most_tokens: int) -> Lengths:
        """Lengths as counted, cut at `most_tokens`; a large number of them is told by its quantiles.

        Raises:
            UsageError: there are none, or one is below 1.
        """
        values = np.asarray(lengths, dtype=np.float64)
        if not len(values) or not np.all(np.isfinite(values)) or np.any(values < 1):
            raise UsageError(
                "every length of an example must be at least 1 token", hint="one length per line, in tokens"
            )
        at = (np.arange(SAMPLES) + 0.5) / SAMPLES
        ordered = np.sort(_cut(values, most_tokens))
        kept = ordered if len(ordered) <= SAMPLES else np.quantile(ordered, at)
        return cls._of_quantiles(kept)

    @classmethod
    def _of_quantiles(cls, quantiles: Floats) -> Lengths:
        return cls(quantiles=tuple(quantiles.tolist()), mean_tokens=float(quantiles.mean()))

    def longest_of(self, examples: npt.ArrayLike) -> Floats:
        """Expected length of the longest of so many examples, `[...]` as the argument.

        The maximum of `b` draws lies below the quantile `u` with probability `u**b`.
        """
        distinct, inverse = np.unique(np.asarray(examples, dtype=np.float64), return_inverse=True)
        steps = np.arange(len(self.quantiles) + 1) / len(self.quantiles)
        weights = steps[1:] ** distinct[:, None] - steps[:-1] ** distinct[:, None]
        # not as a matrix product, whose last bit depends on how many sizes are asked about at once
        longest: Floats = (weights * np.asarray(self.quantiles)).sum(axis=1)[inverse]
        return longest.reshape(np.shape(examples))


def _cut(lengths: Floats, most_tokens: int) -> Floats:
    return np.clip(lengths, 1.0, float(most_tokens))
