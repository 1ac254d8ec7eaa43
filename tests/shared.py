"""What tests of several modules ask for, worked out once in a run of them, by whichever worker asks first."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

FOLDER = "MPPLAN_TESTS_SHARED"
"""Environment variable: the folder of this run, which `conftest.py` makes for all workers."""


def shared(name: str, make: Callable[[], str]) -> str:
    """What `make` returns; outside of a run of tests it is made each time.

    Args:
        name: tells it from all else that is shared.
        make: makes it, the same in every worker.
    """
    folder = os.environ.get(FOLDER)
    if not folder:
        return make()
    made = Path(folder) / hashlib.sha256(name.encode()).hexdigest()
    with alone(made.with_suffix(".lock")):
        if not made.exists():
            made.write_text(make(), encoding="utf-8")
    return made.read_text(encoding="utf-8")


@contextmanager
def alone(path: Path) -> Iterator[None]:
    """Only one process at a time is in here."""
    import fcntl

    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
