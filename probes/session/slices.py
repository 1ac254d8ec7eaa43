"""The time of a run, divided between its workloads so that none starves another."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

from probes.timing.trial import PointGroup

Slice = tuple[str, bool]
"""A workload's groups, its late ones apart."""


class TimeSlices:
    """Until when each workload may start another group.

    Where all groups but the late ones fit, a workload may use whatever those after it do not need. Where they do not,
    each gets its part of what is left, by what it expects to take; what it leaves over goes to the next. Late groups
    get what the others leave: they take longest for what they tell.
    """

    def __init__(self, groups: Sequence[PointGroup], budget_s: float) -> None:
        """Divide a budget.

        Args:
            groups: in the order in which they are measured, those of a workload next to each other.
            budget_s: end of the run, in seconds since it began.
        """
        self._budget_s = budget_s
        self._expected_s = {
            key: sum(group.estimate_s for group in listed) for key, listed in groupby(groups, key=_slice_of)
        }
        self._end_s: dict[Slice, float] = {}
        self._has_started: set[Slice] = set()

    def allows(self, group: PointGroup, now_s: float) -> bool:
        """Whether a group may start now. The first of a workload may, as long as the whole budget holds it.

        Args:
            group: one of the groups.
            now_s: seconds since the run began.
        """
        key = _slice_of(group)
        if key not in self._end_s:
            self._end_s[key] = self._end_of(key, now_s)
        end_s = self._end_s[key] if key in self._has_started else self._budget_s
        if now_s + group.estimate_s > end_s:
            return False
        self._has_started.add(key)
        return True

    def _end_of(self, key: Slice, now_s: float) -> float:
        """The end of a slice that begins now."""
        own_s = self._expected_s.pop(key)
        later_s = sum(time_s for (_, late), time_s in self._expected_s.items() if late <= key[1])
        left_s = self._budget_s - now_s
        if own_s + later_s <= left_s:
            return self._budget_s - later_s
        return now_s + left_s * own_s / (own_s + later_s)


def _slice_of(group: PointGroup) -> Slice:
    return group.points[0].workload, group.late


def with_rest(groups: Sequence[PointGroup]) -> Iterator[tuple[PointGroup, float]]:
    """Each group with the expected time of itself and all after it."""
    left = sum(group.estimate_s for group in groups)
    for group in groups:
        yield group, left
        left -= group.estimate_s
