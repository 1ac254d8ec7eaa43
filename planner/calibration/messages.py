"""Messages that report what a calibration learned."""

from __future__ import annotations

from collections.abc import Mapping

from planner.calibration.design import ENERGY
from planner.calibration.own_runs import LearnedTerm, Total
from planner.errors import Message
from planner.rates.parameters import Figure

HARDLY_OFF_RATIO = 0.005
"""Difference from most teams below which the message reports none: it would be written as 0 %."""
HARDLY_MOVED_RATIO = 0.03
"""Relative change of a parameter's middle, up or down, below which the message says that it agrees with most teams."""

PLANNED = (
    "calibrate.planned_less", "calibrate.planned_same", "calibrate.planned_more", "calibrate.planned_times",
)  # fmt: skip
TOTALS: Mapping[str, tuple[str, ...]] = {
    Figure.TIME: ("calibrate.time_less", "calibrate.time_same", "calibrate.time_more", "calibrate.time_times"),
    Figure.MEMORY: (
        "calibrate.memory_less",
        "calibrate.memory_same",
        "calibrate.memory_more",
        "calibrate.memory_times",
    ),
    Figure.POWER: ("calibrate.power_less", "calibrate.power_same", "calibrate.power_more", "calibrate.power_times"),
    Figure.RUN: ("calibrate.run_less", "calibrate.run_same", "calibrate.run_more", "calibrate.run_times"),
    ENERGY: ("calibrate.energy_less", "calibrate.energy_same", "calibrate.energy_more", "calibrate.energy_times"),
}
"""Messages for the overall result of the runs: less, the same, more than most teams, or at least twice as much."""
CHANGES = ("learned.less", "learned.more", "learned.perhaps_less", "learned.perhaps_more")
"""Messages for a changed parameter, indexed by `_told_change`."""
PART_CHANGES = (
    "learned.part_less", "learned.part_more", "learned.part_perhaps_less", "learned.part_perhaps_more",
)  # fmt: skip
"""Messages for a changed parameter of one GPU, architecture or model, indexed by `_told_change`."""
LEARNED = (
    *CHANGES, *PART_CHANGES,
    "learned.surer", "learned.hidden_better", "learned.hidden_worse", "learned.part_surer",
)  # fmt: skip
"""Keys of the messages about what was learned."""


def total_words(total: Total) -> Message:
    """Return the message for the overall result of one figure."""
    off, learned = total.measured_ratio - 1.0, total.learned_ratio - 1.0
    planned = Message.of(PLANNED[_side(learned)], change_ratio=abs(learned), times=total.learned_ratio)
    key = TOTALS[total.figure][_side(off)]
    return Message.of(key, change_ratio=abs(off), times=total.measured_ratio, planned=planned)


def _side(change_ratio: float) -> int:
    """Return 0 for less, 1 for the same, 2 for more and 3 for at least twice as much."""
    if abs(change_ratio) < HARDLY_OFF_RATIO:
        return 1
    return 0 if change_ratio < 0 else 2 if change_ratio < 1.0 else 3


def words_of(term: LearnedTerm) -> Message:
    """Return the message for what was learned about a term."""
    ratio = term.ratio
    if term.member:
        return _part_words(term)
    if abs(ratio - 1.0) < HARDLY_MOVED_RATIO:
        return Message.of("learned.surer", label=term.name)
    if term.told_as == "hidden":
        before, after = term.before[1], term.after[1]
        if ratio > 1.0:
            return Message.of("learned.hidden_better", label=term.name, before=before, after=after)
        return Message.of("learned.hidden_worse", label=term.name, before=before, after=after)
    return Message.of(CHANGES[_told_change(term)], label=term.name, change_ratio=abs(ratio - 1.0))


def _told_change(term: LearnedTerm) -> int:
    """Return 0 for less and 1 for more; add 2 (perhaps) where the value of most teams is still within the range.

    Similar rows cannot separate causes that have the same effect on them, so that each parameter moves a little.
    """
    low, _, high = term.after
    return 2 * (low <= term.before[1] <= high) + (term.ratio > 1.0)


def _part_words(term: LearnedTerm) -> Message:
    """Return the message for a term of one GPU, architecture or model, which it names."""
    if abs(term.ratio - 1.0) < HARDLY_MOVED_RATIO:
        return Message.of("learned.part_surer", label=term.name, name=term.member)
    return Message.of(
        PART_CHANGES[_told_change(term)], label=term.name, name=term.member, change_ratio=abs(term.ratio - 1.0)
    )
