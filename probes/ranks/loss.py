"""What ended the communication of several ranks, told through torchrun's store, which outlives it.

A rank that meets an error of NCCL knows the reason; the others only wait for it, in a collective that nothing ends
before its limit, and rank 0, which has the record, may be among them. So the reason goes to the store, a thread of
rank 0 looks there, and the rank that told it stays until rank 0 has written it down: torchrun ends all others as soon
as one is gone.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

LOOK_EVERY_S = 0.5
OWN_GRACE_S = 1.0
"""Time for rank 0 to notice by itself; its own thread then writes the record in the usual way."""
WRITTEN_S = 10.0
"""Longest wait of the rank that told the reason."""


class Losses:
    """The first loss of a run."""

    def __init__(self, store: Any = None) -> None:
        """Make the view of one rank.

        Args:
            store: of torchrun; None for one process.
        """
        self._store = store

    def tell(self, text: str) -> str:
        """Tell the others what was lost; returns what was told first."""
        with suppress(Exception):  # the store may be gone too, and nothing more can be told then
            return str(self._store.compare_set("lost", "", text).decode())
        return text

    def told(self) -> str | None:
        """What was told first."""
        with suppress(Exception):
            if self._store.check(["lost"]):
                return str(self._store.get("lost").decode())
        return None

    def written(self) -> None:
        """Say that it is in the record."""
        with suppress(Exception):
            self._store.set("lost/written", "")

    def wait_until_written(self, limit_s: float = WRITTEN_S) -> None:
        """Wait for rank 0."""
        end = time.monotonic() + limit_s
        with suppress(Exception):
            while not self._store.check(["lost/written"]) and time.monotonic() < end:
                time.sleep(0.05)


class LossWatch:
    """Looks in a thread whether another rank has told of a loss while this one waits for it."""

    def __init__(self, losses: Losses, act: Callable[[str], object]) -> None:
        """Begin to look.

        Args:
            losses: where others tell.
            act: called once, in the thread, with what was told.
        """
        self._losses, self._act = losses, act
        self._over = threading.Event()
        self.thread = threading.Thread(target=self._look, name="losses", daemon=True)
        self.thread.start()

    def stop(self) -> None:
        """End: this rank goes on by itself."""
        self._over.set()
        if threading.current_thread() is not self.thread:
            self.thread.join(LOOK_EVERY_S)

    def _look(self) -> None:
        while not self._over.wait(LOOK_EVERY_S):
            text = self._losses.told()
            if text is not None:
                if not self._over.wait(OWN_GRACE_S):
                    self._act(text)
                return
