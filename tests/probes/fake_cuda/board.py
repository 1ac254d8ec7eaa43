"""Which of the machine's GPUs a process has, and what state that one is in."""

from __future__ import annotations

from dataclasses import dataclass

from tests.probes.build import H200


@dataclass(frozen=True, slots=True, kw_only=True)
class Board:
    """One H200 of several; by default the only one, and sound."""

    number: int = 0
    """Of the board in the machine."""
    index: int = 0
    """Its number among the GPUs that the process is shown."""
    count: int = 1
    """GPUs that the process is shown."""
    name: str = H200.name
    power_limit_w: float = 700.0
    sm_clock_hz: float = 1755e6
    clock_event_mask: int = 0x4
    slowness_ratio: float = 1.0
    """Time that its work takes over that of a sound one."""

    @property
    def uuid(self) -> str:
        """As torch reports it; those of a machine's boards differ in the last digit."""
        assert H200.uuid is not None
        return f"{H200.uuid[:-1]}{5 + self.number}"
