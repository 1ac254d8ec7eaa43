"""How a run ended."""

from __future__ import annotations

from planner.lazy import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """How a run ended."""

    points: int
    """Number of lines written."""
    left_out: tuple[str, ...]
    """Groups for which there was no time."""
    lost_device: str | None = None
    """Why the device was lost, if it was; a new process can resume."""
