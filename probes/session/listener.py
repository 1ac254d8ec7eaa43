"""Who is told how a run goes. A library user passes nothing and gets silence."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from planner.records.measurement import Measurement


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """Where a run is."""

    label: str
    """What runs now."""
    done_s: float
    """Expected time of what is done."""
    left_s: float
    """Expected time of what is left."""


class Listener(Protocol):
    """Told of everything that happens in a run."""

    def began(self, path: str, device_name: str) -> None:
        """The device is open, and the record is begun at `path`."""

    def planned(self, groups: int, estimate_s: float) -> None:
        """The plan is made."""

    def started(self, progress: Progress) -> None:
        """A group of points begins."""

    def measured(self, measurement: Measurement) -> None:
        """A line was written."""

    def noted(self, text: str) -> None:
        """Something the user should know."""


class Silence:
    """Tells nobody."""

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
