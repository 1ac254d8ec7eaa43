"""Distance of each member of a fleet from the others, over all points that it shares with them.

At each point, a member is compared with the median of the members. The median of these differences over the points is
its distance, so that a single odd point has no effect. A member is an outlier if its distance exceeds a bound: a least
relevant effect, or a multiple of the spread among the members, whichever is larger.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import log
from statistics import median

Table = Mapping[str, Mapping[str, float]]
"""Figures by point and member."""

LEAST_MEMBERS = 4
"""Fewest members for outliers to be judged; with fewer, the outliers would dominate the median and the spread."""
LEAST_POINTS = 3
"""Fewest shared points for a member to be judged."""
SPREADS = 3.5
"""Number of standard deviations beyond which a member is an outlier: 0.2 of 1,000 normal members are."""
_MAD_TO_SD = 1.4826
"""Standard deviation of a normal distribution over its median absolute deviation."""
LEAST_SHARE = 0.5
"""Share of the members that must have a point for it to count; the median of fewer is not representative."""
_PRIOR_MEMBERS = 8
"""Number of members that the usual spread counts for beside the measured one, which few members estimate poorly."""


def against_median(table: Table) -> dict[str, tuple[float, int]]:
    """Median over points of the log ratio of each member's figure to the members' median, and its number of points.

    Args:
        table: positive figures.
    """
    return _medians(table, lambda value, usual: log(value / usual))


def above_median(table: Table) -> dict[str, tuple[float, int]]:
    """Median over points of each member's figure minus the members' median, and its number of points."""
    return _medians(table, lambda value, usual: value - usual)


def _medians(table: Table, compare: Callable[[float, float], float]) -> dict[str, tuple[float, int]]:
    members = {name for row in table.values() for name in row}
    differences: dict[str, list[float]] = {}
    for row in table.values():
        if len(row) < 2 or len(row) < LEAST_SHARE * len(members):
            continue
        usual = median(row.values())
        for name, value in row.items():
            differences.setdefault(name, []).append(compare(value, usual))
    return {name: (median(values), len(values)) for name, values in differences.items()}


def far_above(figures: Mapping[str, tuple[float, int]], least: float, usual_sd: float) -> dict[str, float]:
    """Members whose figure is far above the median, with their distance from it.

    Args:
        figures: figure of each member with its number of points; members with fewer than `LEAST_POINTS` are not judged.
        least: smallest distance that matters.
        usual_sd: expected standard deviation between sound members.
    """
    known = {name: value for name, (value, points) in figures.items() if points >= LEAST_POINTS}
    if len(known) < LEAST_MEMBERS:
        return {}
    centre = median(known.values())
    spread = _MAD_TO_SD * median(abs(value - centre) for value in known.values())
    count = len(known)
    sd = ((count * spread**2 + _PRIOR_MEMBERS * usual_sd**2) / (count + _PRIOR_MEMBERS)) ** 0.5
    bound = max(least, SPREADS * sd)
    return {name: value - centre for name, value in known.items() if value - centre > bound}
