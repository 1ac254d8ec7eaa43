"""Order statistics of timing samples, without assumptions about their distribution, which has rare large spikes."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import numpy as np

from planner.lazy import dataclass

Z95 = 1.96
"""Normal quantile of a two-sided 95 % interval."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SampleSummary:
    """Summary statistics of samples, in seconds. No sample is ever dropped for being slow."""

    median_s: float
    ci_low_s: float
    ci_high_s: float
    iqr_s: float
    p05_s: float
    p95_s: float
    min_s: float
    samples: int

    @property
    def ci_ratio(self) -> float:
        """Half the confidence interval over the median."""
        return (self.ci_high_s - self.ci_low_s) / (2.0 * self.median_s)


def summarise(samples: Sequence[float]) -> SampleSummary:
    """Return the median with its 95 % order-statistic confidence interval, and other order statistics.

    The ranks are `n/2 ∓ 1.96 √n / 2` (binomial, normal approximation); with fewer than eight samples the interval
    is the range.

    Args:
        samples: positive seconds, at least one.
    """
    values = np.sort(np.asarray(samples, dtype=np.float64))
    n = len(values)
    half = Z95 * math.sqrt(n) / 2.0
    low = max(math.floor(n / 2.0 - half), 0)
    high = min(math.ceil(n / 2.0 + half) - 1, n - 1)
    p05, p25, median, p75, p95 = np.quantile(values, [0.05, 0.25, 0.5, 0.75, 0.95])
    return SampleSummary(
        median_s=float(median),
        ci_low_s=float(min(values[low], median)),
        ci_high_s=float(max(values[max(high, low)], median)),
        iqr_s=float(p75 - p25),
        p05_s=float(p05),
        p95_s=float(p95),
        min_s=float(values[0]),
        samples=n,
    )


def is_steady(samples: Sequence[float], block: int = 10, tolerance: float = 0.005) -> bool:
    """Return whether warm-up is over: the medians of the last three blocks differ by less than the tolerance."""
    if len(samples) < 3 * block:
        return False
    medians = [float(np.median(samples[len(samples) - (i + 1) * block : len(samples) - i * block])) for i in range(3)]
    return all(abs(a / b - 1.0) < tolerance for a, b in itertools.pairwise(medians))
