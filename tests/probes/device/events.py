"""`torch.cuda`'s events without a device: moments of a time that the trials themselves move on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest


class Event:
    """A moment; whatever was asked for is done at once."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self.at_s = 0.0

    def record(self) -> None:
        self.at_s = self._now()

    def synchronize(self) -> None:
        return

    def elapsed_time(self, end: Event) -> float:
        return 1e3 * (end.at_s - self.at_s)


def use_events(monkeypatch: pytest.MonkeyPatch, now: Callable[[], float]) -> None:
    """Let CUDA's clock read this time."""
    torch: Any = pytest.importorskip("torch")
    monkeypatch.setattr(torch.cuda, "synchronize", lambda: None)
    monkeypatch.setattr(torch.cuda, "Event", lambda **_: Event(now))
