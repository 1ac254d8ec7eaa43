"""What is slow to make is made once in a run of the tests, also where workers of pytest-xdist share them."""

from __future__ import annotations

import os
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import pytest

from tests.probes.fake_cuda.traced import TRACED_TO
from tests.shared import alone

Made = TypeVar("Made")
LINES = "lines"
"""Folder beside what was made: which lines of the probe ran."""


def shared_folder(factory: pytest.TempPathFactory) -> Path:
    """A folder of this run of the tests, the same for all of its workers."""
    base = factory.getbasetemp()
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "once"
    folder.mkdir(exist_ok=True)
    return folder


def once(factory: pytest.TempPathFactory, name: str, make: Callable[[Path], Made], *, with_lines: bool = False) -> Made:
    """What `make` returns for a folder of its own; the first worker that asks makes it, the others wait.

    Args:
        factory: knows the folder of this run of the tests.
        name: of what is made.
        make: makes it.
        with_lines: processes that measure which lines run (`traced`) leave them beside it; it takes half as long again.
    """
    folder = shared_folder(factory) / (f"{name}-with-{LINES}" if with_lines else name)
    folder.mkdir(exist_ok=True)
    made = folder / "made.pickle"
    with alone(folder / "lock"):
        if not made.exists():
            with pytest.MonkeyPatch.context() as patch:
                if with_lines:
                    (folder / LINES).mkdir(exist_ok=True)
                    patch.setenv(TRACED_TO, str(folder / LINES))
                whole = pickle.dumps(make(folder))
            made.write_bytes(whole)
    result: Made = pickle.loads(made.read_bytes())
    return result
