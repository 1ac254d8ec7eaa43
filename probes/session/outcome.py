"""How a run ended."""

from __future__ import annotations

from planner.lazy import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """How a run ended."""

    points: int
    """Lines written."""
    left_out: tuple[str, ...]
    """Groups for which there was no time."""
    lost_device: str | None = None
    """Set where the device broke; a new process can resume."""
