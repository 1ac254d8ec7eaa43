"""Divides the time of a run between its workloads so that none starves another."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

from probes.timing.trial import PointGroup

SliceKey = tuple[str, bool]
"""A workload, and whether these are its late groups."""


class TimeSlices:
    """Limits until when each workload may start another group.

    If all groups but the late ones fit, a workload may use all the time that later ones do not need. If they do not
    fit, each workload gets a share of the time left in proportion to its expected time; what it does not use goes to
    the next. Late groups get what the others leave, because they take longest for the information they give.
    """

    def __init__(self, groups: Sequence[PointGroup], budget_s: float) -> None:
        """Divide a budget.

        Args:
            groups: in the order in which they are measured; the groups of a workload are adjacent.
            budget_s: end of the run, in seconds since it began.
        """
        self._budget_s = budget_s
        self._expected_s = {
            key: sum(group.estimate_s for group in listed) for key, listed in groupby(groups, key=_key_of)
        }
        self._end_s: dict[SliceKey, float] = {}
        self._has_started: set[SliceKey] = set()

    def allows(self, group: PointGroup, now_s: float) -> bool:
        """Return whether a group may start now. A workload's first group may if it fits the whole budget.

        Args:
            group: one of the groups.
            now_s: seconds since the run began.
        """
        key = _key_of(group)
        if key not in self._end_s:
            self._end_s[key] = self._end_of(key, now_s)
        end_s = self._end_s[key] if key in self._has_started else self._budget_s
        if now_s + group.estimate_s > end_s:
            return False
        self._has_started.add(key)
        return True

    def _end_of(self, key: SliceKey, now_s: float) -> float:
        """Return the end of a slice that begins now."""
        own_s = self._expected_s.pop(key)
        later_s = sum(time_s for (_, late), time_s in self._expected_s.items() if late <= key[1])
        left_s = self._budget_s - now_s
        if own_s + later_s <= left_s:
            return self._budget_s - later_s
        return now_s + left_s * own_s / (own_s + later_s)


def _key_of(group: PointGroup) -> SliceKey:
    return group.points[0].workload, group.late


def with_remaining_s(groups: Sequence[PointGroup]) -> Iterator[tuple[PointGroup, float]]:
    """Yield each group with the expected time of itself and all later groups."""
    remaining_s = sum(group.estimate_s for group in groups)
    for group in groups:
        yield group, remaining_s
        remaining_s -= group.estimate_s
