"""Callbacks that report the progress of a run. By default nothing is reported."""

from __future__ import annotations

from typing import Protocol

from planner.lazy import dataclass
from planner.records.measurement import Measurement


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """Progress of a run."""

    label: str
    """What is running."""
    done_s: float
    """Seconds of the run so far."""
    left_s: float
    """Expected time of what is left."""


class Listener(Protocol):
    """Called for everything that happens in a run."""

    def began(self, path: str, device_name: str) -> None:
        """The device is open, and the record at `path` has been started."""

    def planned(self, groups: int, estimate_s: float) -> None:
        """The plan is made."""

    def started(self, progress: Progress) -> None:
        """A group of points is about to be measured."""

    def measured(self, measurement: Measurement) -> None:
        """A line has been written."""

    def noted(self, text: str) -> None:
        """There is something that the user should know."""


class Silence:
    """Ignores everything."""

    def began(self, path: str, device_name: str) -> None:
        """See `Listener`."""

    def planned(self, groups: int, estimate_s: float) -> None:
        """See `Listener`."""

    def started(self, progress: Progress) -> None:
        """See `Listener`."""

    def measured(self, measurement: Measurement) -> None:
        """See `Listener`."""

    def noted(self, text: str) -> None:
        """See `Listener`."""
