"""Lengths of the examples of a data set, and the cost of padding and packing them.

Lengths are assumed to be log-normal, truncated at the longest sequence, or are read from a file. A padded batch costs
the tokens of its longest example times the number of examples; a packed batch costs only its tokens.
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
"""Standard deviation of the logarithm of the lengths if only their mean is known; assumed. Half of the examples are
then within a factor of 1.7 of the median."""

SAMPLES = 999
"""Number of quantiles that represent a distribution."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lengths:
    """Lengths of examples in tokens, as quantiles."""

    quantiles: tuple[float, ...]
    """Equally likely lengths of examples in ascending order."""
    mean_tokens: float
    """Mean of the lengths."""

    @classmethod
    def around(cls, mean_tokens: float, most_tokens: int, spread: float = SPREAD) -> Lengths:
        """Log-normal lengths, truncated at `most_tokens`, whose mean after truncation is `mean_tokens`.

        Args:
            mean_tokens: mean of the truncated lengths.
            most_tokens: length of the longest sequence in training.
            spread: standard deviation of the logarithm before truncation.

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
        for _ in range(80):  # the mean rises with the median, so bisect
            median = 0.5 * (low + high)
            low, high = (median, high) if _cut(median * shape, most_tokens).mean() < mean_tokens else (low, median)
        return cls._of_quantiles(_cut(high * shape, most_tokens))

    @classmethod
    def of(cls, lengths: Floats, most_tokens: int) -> Lengths:
        """Given lengths, truncated at `most_tokens`; more than `SAMPLES` of them are represented by their quantiles.

        Raises:
            UsageError: there are no lengths, or one is below 1 or not finite.
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
        """Expected length of the longest of `examples` examples, in the shape of the argument.

        The maximum of `b` draws is below the quantile `u` with probability `u**b`.
        """
        distinct, inverse = np.unique(np.asarray(examples, dtype=np.float64), return_inverse=True)
        steps = np.arange(len(self.quantiles) + 1) / len(self.quantiles)
        weights = steps[1:] ** distinct[:, None] - steps[:-1] ** distinct[:, None]
        # not a matrix product, because the last bit of its result would depend on the number of sizes
        longest: Floats = (weights * np.asarray(self.quantiles)).sum(axis=1)[inverse]
        return longest.reshape(np.shape(examples))


def _cut(lengths: Floats, most_tokens: int) -> Floats:
    return np.clip(lengths, 1.0, float(most_tokens))
