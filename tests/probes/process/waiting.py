"""Waiting for a process on a machine of any speed: until something holds, unless the process ends before."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from subprocess import Popen

LIMIT_S = 600.0
"""Only what hangs takes longer."""


def wait_until(holds: Callable[[], bool], process: Popen[str] | None = None) -> None:
    """Wait until something holds.

    Args:
        holds: whether it does by now.
        process: whose work it is; where it ends before, the test fails with what it said.
    """
    end = time.monotonic() + LIMIT_S
    while not holds():
        if process is not None and process.poll() is not None and not holds():
            raise AssertionError(f"the process has ended with {process.returncode}: {process.communicate()}")
        if time.monotonic() >= end:
            if process is not None:
                process.kill()
            raise AssertionError(f"nothing within {LIMIT_S:.0f} s")
        time.sleep(0.02)


def wait_for_lines(path: Path, count: int, process: Popen[str]) -> None:
    """Wait until a process has written at least so many lines."""

    def holds() -> bool:
        return path.exists() and path.read_text(encoding="utf-8").count("\n") >= count

    wait_until(holds, process)
