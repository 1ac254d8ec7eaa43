"""Time that passes only when work is modelled: eight minutes of a GPU are over in seconds.

The main thread moves the time forward; a thread that waits for a moment (the sampler) is woken when the time gets
there, and the main thread goes on once it waits again.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

_STUCK_S = 300.0
"""Of real time, after which a thread that neither waits nor ends is an error."""


_SHORTEST_WAIT_S = 0.025
"""A sampler that polls every 10 ms would be woken a hundred times a second; what it reads changes ten times."""


class VirtualTime:
    """A clock for `time.monotonic`, `time.perf_counter` and `time.sleep`, and for events with a timeout."""

    def __init__(self) -> None:
        self.now_s = 1000.0
        self._hooks: list[Callable[[float, float], None]] = []
        self._change = threading.Condition()
        self._deadlines: dict[object, float] = {}
        self._running = 0
        """Threads, besides the main one, that neither wait nor have ended."""

    def on_advance(self, hook: Callable[[float, float], None]) -> None:
        """Call a hook with every stretch of time and the power drawn in it."""
        self._hooks.append(hook)

    def sleep(self, seconds: float) -> None:
        """Let time pass without work."""
        self.advance(seconds, None)

    def advance(self, seconds: float, power_w: float | None) -> None:
        """Let time pass; `power_w` is what the device draws meanwhile, None where it rests."""
        end = self.now_s + seconds
        self._until_all_wait()
        while self._deadlines:
            with self._change:
                first = min(self._deadlines.values(), default=end)
                if first > end:
                    break
                self._pass(first - self.now_s, power_w)
                for key in [key for key, at in self._deadlines.items() if at <= self.now_s]:
                    del self._deadlines[key]
                    self._running += 1
                self._change.notify_all()
            self._until_all_wait()
        self._pass(end - self.now_s, power_w)

    def _until_all_wait(self) -> None:
        if self._running:
            with self._change:
                if not self._change.wait_for(lambda: self._running == 0, _STUCK_S):
                    raise AssertionError("a thread neither waits for a moment nor ends")

    def _pass(self, seconds: float, power_w: float | None) -> None:
        if seconds > 0:
            for hook in self._hooks:
                hook(seconds, -1.0 if power_w is None else power_w)
            self.now_s += seconds

    def wait(self, seconds: float, is_over: Callable[[], bool]) -> bool:
        """Wait in a thread for a moment, or until `is_over`; whether it is over."""
        key = object()
        with self._change:
            self._deadlines[key] = self.now_s + max(seconds, _SHORTEST_WAIT_S)
            self._running -= 1
            self._change.notify_all()
            self._change.wait_for(lambda: is_over() or key not in self._deadlines)
            if self._deadlines.pop(key, None) is not None:
                self._running += 1
            return is_over()

    def wake(self) -> None:
        """Let waiting threads look whether what they wait for is over."""
        with self._change:
            self._change.notify_all()

    def started(self) -> None:
        """A thread begins."""
        with self._change:
            self._running += 1

    def ended(self) -> None:
        """A thread has ended."""
        with self._change:
            self._running -= 1
            self._change.notify_all()

    def time_module(self) -> SimpleNamespace:
        """Stands for the module `time`."""
        return SimpleNamespace(
            monotonic=lambda: self.now_s,
            perf_counter=lambda: self.now_s,
            sleep=self.sleep,
            time=time.time,
            time_ns=time.time_ns,
        )

    def threading_module(self) -> SimpleNamespace:
        """Stands for the module `threading` in the sampler."""
        return SimpleNamespace(Event=lambda: VirtualEvent(self), Thread=lambda **of: VirtualThread(self, **of))


class VirtualEvent:
    """`threading.Event` on a virtual time."""

    def __init__(self, clock: VirtualTime) -> None:
        self._clock, self._is_set = clock, False

    def set(self) -> None:
        """See `threading.Event.set`."""
        self._is_set = True
        self._clock.wake()

    def is_set(self) -> bool:
        """See `threading.Event.is_set`."""
        return self._is_set

    def wait(self, timeout: float) -> bool:
        """See `threading.Event.wait`."""
        return self._clock.wait(timeout, self.is_set)


class VirtualThread(threading.Thread):
    """A thread that the virtual time waits for."""

    def __init__(self, clock: VirtualTime, **settings: Any) -> None:
        super().__init__(**settings)
        self._clock = clock

    def start(self) -> None:
        """See `threading.Thread.start`."""
        self._clock.started()
        super().start()

    def run(self) -> None:
        """See `threading.Thread.run`."""
        try:
            super().run()
        finally:
            self._clock.ended()
