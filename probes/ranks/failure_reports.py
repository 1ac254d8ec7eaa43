"""The reason that ended communication between ranks, reported through torchrun's store, which outlives it.

A rank that meets an NCCL error knows the reason. The others only wait in a collective that nothing ends before its time
limit, and rank 0, which has the record, may be among them. The reason therefore goes to the store, where a thread of
rank 0 looks for it. The rank that reported it stays until rank 0 has written it to the record, because torchrun ends
all other ranks as soon as one is gone.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

LOOK_EVERY_S = 0.5
NOTICE_GRACE_S = 1.0
"""Seconds for rank 0 to notice by itself; its own thread then writes the record in the usual way."""
WRITTEN_S = 10.0
"""Longest wait, in seconds, of the rank that reported the reason."""


class FailureReports:
    """The first loss of communication in a run."""

    def __init__(self, store: Any = None) -> None:
        """Make the view of one rank.

        Args:
            store: torchrun's store; None for one process.
        """
        self._store = store

    def report(self, text: str) -> str:
        """Report a loss to the others; return the reason that was reported first."""
        with suppress(Exception):  # the store may be gone too, and then nothing more can be reported
            return str(self._store.compare_set("lost", "", text).decode())
        return text

    def reported(self) -> str | None:
        """Return the reason that was reported first; None if there is none."""
        with suppress(Exception):
            if self._store.check(["lost"]):
                return str(self._store.get("lost").decode())
        return None

    def mark_written(self) -> None:
        """Report that the reason is in the record."""
        with suppress(Exception):
            self._store.set("lost/written", "")

    def wait_until_written(self, limit_s: float = WRITTEN_S) -> None:
        """Wait until rank 0 has written the reason to the record."""
        end = time.monotonic() + limit_s
        with suppress(Exception):
            while not self._store.check(["lost/written"]) and time.monotonic() < end:
                time.sleep(0.05)


class FailureWatcher:
    """Watches, in a thread, for a loss reported by another rank while this rank waits for that rank."""

    def __init__(self, reports: FailureReports, act: Callable[[str], object]) -> None:
        """Start watching.

        Args:
            reports: where other ranks report.
            act: called once, in the thread, with the reason.
        """
        self._reports, self._act = reports, act
        self._over = threading.Event()
        self.thread = threading.Thread(target=self._look, name="failure reports", daemon=True)
        self.thread.start()

    def stop(self) -> None:
        """Stop watching, because this rank continues by itself."""
        self._over.set()
        if threading.current_thread() is not self.thread:
            self.thread.join(LOOK_EVERY_S)

    def _look(self) -> None:
        while not self._over.wait(LOOK_EVERY_S):
            text = self._reports.reported()
            if text is not None:
                if not self._over.wait(NOTICE_GRACE_S):
                    self._act(text)
                return
