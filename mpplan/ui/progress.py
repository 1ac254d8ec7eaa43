"""Progress of long work on stderr: one updating line on a terminal, a new line every few seconds elsewhere."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from mpplan.ui.sink import folded, uncleaned
from planner.lazy import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """The timing of progress messages."""

    first_s: float
    """Work that takes less time than this shows no progress."""
    every_s: float
    """Time between two messages."""


ON_TERMINAL = Pace(first_s=2.0, every_s=0.5)
IN_LOG = Pace(first_s=5.0, every_s=5.0)


class _Line:
    """The line to which progress is written."""

    def __init__(self, pace: Pace | None) -> None:
        self._moves = sys.stderr.isatty()
        self.pace = pace or (ON_TERMINAL if self._moves else IN_LOG)
        self._width = 0

    def show(self, text: str) -> None:
        """Write the text over the previous text, or as a separate line if this is not a terminal."""
        if self._moves:
            uncleaned(sys.stderr).write("\r" + folded(text).ljust(self._width))
            self._width = len(folded(text))
        else:
            sys.stderr.write(text + "\n")
        sys.stderr.flush()

    def clear(self) -> None:
        """Erase the line on a terminal."""
        if self._moves and self._width:
            uncleaned(sys.stderr).write("\r" + " " * self._width + "\r")
            sys.stderr.flush()


LEAST_DONE_RATIO = 0.1
"""Share of the work after which the time left is shown; the first items also load and compile what all items need."""


def _time(passed_s: float, done_ratio: float) -> str:
    if done_ratio < LEAST_DONE_RATIO:
        return f"{passed_s:.0f} s so far"
    return f"about {passed_s / done_ratio * (1.0 - done_ratio):.0f} s left"


@contextmanager
def working(what: str, *, quiet: bool = False, pace: Pace | None = None) -> Iterator[None]:
    """Report from time to time how long work of unknown length has taken.

    Args:
        what: name of the work, for example `planning`.
        quiet: print nothing.
        pace: timing of the messages; default: for a terminal or for a log, depending on stderr.
    """
    if quiet:
        yield
        return
    line, started, done = _Line(pace), time.monotonic(), threading.Event()

    def tell() -> None:
        wait_s = line.pace.first_s
        while not done.wait(wait_s):
            line.show(f"{what}, {time.monotonic() - started:.0f} s so far")
            wait_s = line.pace.every_s

    teller = threading.Thread(target=tell, daemon=True)
    teller.start()
    try:
        yield
    finally:
        done.set()
        teller.join()
        line.clear()


def counted(total: int, what: str, *, quiet: bool = False, pace: Pace | None = None) -> Callable[[int], None] | None:
    """Return a callback that takes the number of items done and prints the time left; None if quiet.

    Args:
        total: number of items.
        what: name of the items, for example `rows`.
        quiet: print nothing.
        pace: timing of the messages; default: for a terminal or for a log, depending on stderr.
    """
    if quiet:
        return None
    line, started = _Line(pace), time.monotonic()
    next_s = line.pace.first_s

    def tell(done: int) -> None:
        nonlocal next_s
        passed_s = time.monotonic() - started
        if done >= total:
            line.clear()
        elif passed_s >= next_s:
            next_s = passed_s + line.pace.every_s
            line.show(f"{done} of {total} {what}, {_time(passed_s, done / total)}")

    return tell
