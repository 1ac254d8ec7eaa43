"""How far each member of a fleet is from the others, over all points that it shares with them.

At each point a member is compared with the median of the members; its figure is the median of that over the points, so
that one odd point moves nothing. Members beyond a bound are far: the bound is a least effect, or a multiple of the
spread that the members have among themselves, whichever is larger.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import log
from statistics import median

Table = Mapping[str, Mapping[str, float]]
"""Figures by point and member."""

LEAST_MEMBERS = 4
"""With fewer, the median and the spread are made of the very members that they should judge."""
LEAST_POINTS = 3
"""With fewer shared points a member is not judged."""
SPREADS = 3.5
"""Spreads beyond which a member is far: of 1,000 normal ones 0.2 are."""
_MAD_TO_SD = 1.4826
"""Standard deviation of a normal distribution over its median absolute deviation."""
LEAST_SHARE = 0.5
"""A point counts where at least this share of the members has it: of fewer the median may be anybody's."""
_PRIOR_MEMBERS = 8
"""Members that the usual spread counts for beside the measured one, which few members do not tell well."""


def against_median(table: Table) -> dict[str, tuple[float, int]]:
    """For each member the median over points of the logarithm of its figure over the members' median, and the points.

    Args:
        table: positive figures.
    """
    return _medians(table, lambda value, usual: log(value / usual))


def above_median(table: Table) -> dict[str, tuple[float, int]]:
    """The same as a difference, in the unit of the figures."""
    return _medians(table, lambda value, usual: value - usual)


def _medians(table: Table, compare: Callable[[float, float], float]) -> dict[str, tuple[float, int]]:
    everyone = {name for row in table.values() for name in row}
    differences: dict[str, list[float]] = {}
    for row in table.values():
        if len(row) < 2 or len(row) < LEAST_SHARE * len(everyone):
            continue
        usual = median(row.values())
        for name, value in row.items():
            differences.setdefault(name, []).append(compare(value, usual))
    return {name: (median(values), len(values)) for name, values in differences.items()}


def far_above(figures: Mapping[str, tuple[float, int]], least: float, usual_sd: float) -> dict[str, float]:
    """Members whose figure is far above the median, with how far.

    Args:
        figures: each with the points that it rests on; those of fewer than `LEAST_POINTS` are not judged.
        least: the smallest distance that matters.
        usual_sd: standard deviation between sound members, as one expects it.
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
