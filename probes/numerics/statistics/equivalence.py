"""Test whether two precisions are equivalent: two one-sided paired t tests (TOST), and the number of seeds needed.

Sources: Schuirmann, J. Pharmacokinet. Biopharm. 15 (1987) 657; Lakens, Soc. Psychol. Personal. Sci. 8 (2017) 355; the
number of pairs follows Julious, Stat. Med. 23 (2004) 1921, section 5, with Student's quantiles.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite, sqrt
from statistics import fmean, stdev

from planner.lazy import dataclass
from probes.numerics.statistics.student import quantile, upper_tail

ALPHA = 0.05
"""Risk of calling two different precisions equivalent, and of calling two equivalent precisions different."""
POWER = 0.80
"""Probability of reaching the verdict that holds, on which the number of seeds is based."""
MOST_SEEDS = 10_000
"""Largest number of seeds that is computed; if even more are needed, a wider margin is the answer."""
LEAST_PAIRS = 2

EQUIVALENT, NOT_EQUIVALENT, CANNOT_TELL = "equivalent", "not_equivalent", "cannot_tell"
VERDICTS = (EQUIVALENT, NOT_EQUIVALENT, CANNOT_TELL)


@dataclass(frozen=True, slots=True, kw_only=True)
class Equivalence:
    """Comparison of two precisions by paired runs. Differences are the lower precision's figure minus the higher's."""

    verdict: str
    """`equivalent`: the interval lies within the margin; `not_equivalent`: it lies wholly outside, or a run ended
    without a figure; `cannot_tell`: it straddles the margin, or there are too few pairs."""
    reason: str
    """Reason of the verdict, in words."""
    pairs: int
    """Pairs of runs with a finite figure."""
    diverged: int
    """Pairs whose run in the lower precision ended with NaN or infinity."""
    difference_low: float | None
    """Lower end of the 90 % interval of the mean difference."""
    difference_mid: float | None
    """Mean difference."""
    difference_high: float | None
    """Upper end of the interval."""
    difference_sd: float | None
    """Standard deviation of the differences."""
    margin: float
    """Half the width of the interval that counts as equal."""
    p_value: float | None
    """The larger p-value of the two one-sided tests."""
    seeds_needed: int | None
    """Pairs with which a verdict would be reached in four of five attempts, if the true difference were the mean found;
    None if no number up to `MOST_SEEDS` is enough, or the spread is unknown."""
    seeds_would_show: str | None
    """That verdict: `equivalent` where the mean lies within the margin, `not_equivalent` where it lies outside."""


def compare(differences: Sequence[float], margin: float) -> Equivalence:
    """Test paired differences for equivalence within ± margin.

    Args:
        differences: one per seed; NaN or infinite if the lower precision's run ended so.
        margin: above 0, in the unit of the differences.
    """
    usable = [difference for difference in differences if isfinite(difference)]
    diverged = len(differences) - len(usable)
    if diverged or len(usable) < LEAST_PAIRS:
        pairs = "1 pair" if len(usable) == 1 else f"{len(usable)} pairs"
        few = f"{pairs} of runs cannot tell; at least {LEAST_PAIRS} are needed"
        return Equivalence(
            verdict=NOT_EQUIVALENT if diverged else CANNOT_TELL,
            reason=f"{diverged} of {len(differences)} runs ended without a finite figure" if diverged else few,
            pairs=len(usable), diverged=diverged, margin=margin, p_value=None, seeds_needed=None, seeds_would_show=None,
            difference_low=None, difference_mid=fmean(usable) if usable else None, difference_high=None,
            difference_sd=None,
        )  # fmt: skip
    n, mean, sd = len(usable), fmean(usable), stdev(usable)
    error = sd / sqrt(n)
    half = quantile(1.0 - ALPHA, n - 1) * error
    low, high = mean - half, mean + half
    p_value = max(_tail(mean + margin, error, n - 1), _tail(margin - mean, error, n - 1))
    verdict, reason = _verdict(low, high, margin)
    needed = seeds_needed(mean, sd, margin)
    return Equivalence(
        verdict=verdict, reason=reason, pairs=n, diverged=0, difference_low=low, difference_mid=mean,
        difference_high=high, difference_sd=sd, margin=margin, p_value=p_value,
        seeds_needed=needed,
        seeds_would_show=None if needed is None else EQUIVALENT if abs(mean) < margin else NOT_EQUIVALENT,
    )  # fmt: skip


def _tail(distance: float, error: float, freedom: int) -> float:
    """Return the p-value of one test, for a mean this far inside one end of the margin."""
    if error == 0.0:
        return 0.0 if distance > 0 else 1.0
    return upper_tail(distance / error, freedom)


def _verdict(low: float, high: float, margin: float) -> tuple[str, str]:
    if -margin < low and high < margin:
        return EQUIVALENT, "the interval of the difference lies within the margin"
    if low >= margin or high <= -margin:
        return NOT_EQUIVALENT, "the whole interval of the difference lies outside the margin"
    return CANNOT_TELL, "the interval of the difference reaches over the margin"


def seeds_needed(mean: float, sd: float, margin: float) -> int | None:
    """Return the pairs that reach a verdict with a power of 80 %, if the true difference is `mean` with this spread.

    Within the margin, the verdict is equivalence; outside it, that the whole interval lies outside.

    Args:
        mean: true difference.
        sd: standard deviation of the differences.
        margin: half the width of the interval that counts as equal.

    Returns:
        The number, at least 2; None if the difference equals the margin, or the number is above `MOST_SEEDS`.
    """
    if abs(mean) == margin or not _shown(mean, sd, margin, MOST_SEEDS):
        return None
    low, high = LEAST_PAIRS - 1, LEAST_PAIRS
    while not _shown(mean, sd, margin, high):
        low, high = high, min(2 * high, MOST_SEEDS)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if _shown(mean, sd, margin, middle) else (middle, high)
    return high


def _shown(mean: float, sd: float, margin: float, n: int) -> bool:
    """Return whether `n` pairs have the power; for equivalence, neither of the two tests may fail on its side."""
    error = sd / sqrt(n)
    if error == 0.0:
        return True
    t = quantile(1.0 - ALPHA, n - 1)
    if abs(mean) > margin:
        return upper_tail((abs(mean) - margin) / error - t, n - 1) <= 1.0 - POWER
    near, far = (margin - abs(mean)) / error - t, (margin + abs(mean)) / error - t
    return upper_tail(near, n - 1) + upper_tail(far, n - 1) <= 1.0 - POWER
