"""Runs cases in a process of their own, each within a time; a case that hangs or kills it costs only itself."""

from __future__ import annotations

import multiprocessing
import resource
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path
from types import ModuleType
from typing import Any

from tests.fuzz.case import DIED, HUNG, Outcome

LIMIT_S = 600.0
"""Of one case; the slowest question takes some ten seconds on a free core, and the machine may be busy."""
MEMORY_BYTES = 6 * 1024**3
"""What a worker may add to the address space of the process that it is forked from, which may have loaded PyTorch: more
than any question needs, so that endless reading ends in an error."""


class Worker:
    """One process that runs the cases of a surface, one after the other; started anew after one that hung or died."""

    def __init__(self, surface: ModuleType, limit_s: float = LIMIT_S) -> None:
        self._surface = surface
        self._limit_s = limit_s
        self._process: Any = None
        self._pipe: Connection | None = None

    def run(self, case: Any) -> tuple[Any, list[str]]:
        """The outcome of a case and what is wrong with it."""
        pipe = self._pipe or self._start()
        pipe.send(case)
        if not pipe.poll(self._limit_s):
            self.stop()
            return _nothing(HUNG), [f"it did not end within {self._limit_s:.0f} s"]
        try:
            outcome, wrong = pipe.recv()
        except EOFError:
            self.stop()
            return _nothing(DIED), ["the process died"]
        return outcome, wrong

    def stop(self) -> None:
        """End the process; another is started for the next case."""
        if self._process is not None:
            self._process.kill()
            self._process.join()
        self._process = self._pipe = None

    def _start(self) -> Connection:
        context = multiprocessing.get_context("fork")
        self._pipe, theirs = context.Pipe()
        self._process = context.Process(target=_work, args=(theirs, self._surface), daemon=True)
        self._process.start()
        theirs.close()
        return self._pipe


def _nothing(code: int) -> Outcome:
    return Outcome(code=code, out=b"", err="")


def judge_of(surface: ModuleType) -> Callable[[Any, Any], list[str]]:
    """What says what is wrong with an outcome of a surface: its own `faults`, else that of all."""
    from tests.fuzz.faults import faults

    judge: Callable[[Any, Any], list[str]] = getattr(surface, "faults", faults)
    return judge


def _address_space_bytes() -> int:
    """Size of this process's address space; 0 where the system does not report it (not Linux)."""
    try:
        return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0]) * resource.getpagesize()
    except OSError:
        return 0


def _work(pipe: Connection, surface: ModuleType) -> None:
    most = _address_space_bytes() + MEMORY_BYTES
    resource.setrlimit(resource.RLIMIT_AS, (most, most))
    judge = judge_of(surface)
    while True:
        try:
            case = pipe.recv()
        except EOFError:
            return
        outcome = surface.run(case)
        pipe.send((outcome, judge(case, outcome)))
