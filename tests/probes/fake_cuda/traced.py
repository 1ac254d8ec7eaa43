"""Which lines of the probe run: measured in a test's own process, and in those that it starts."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import coverage
import pytest

import probes

TRACED_TO = "MPPLAN_TRACED_TO"
"""Environment variable: the folder to which processes write which lines they ran; none is measured without it."""
SOURCE = Path(probes.__file__).parent
RUN = pytest.StashKey[AbstractContextManager[None]]()


def tracer(folder: Path) -> coverage.Coverage:
    """What measures the lines of `probes/`, into a file of its own in a folder."""
    made = coverage.Coverage(
        data_file=str(folder / "lines"), data_suffix=True, source=[str(SOURCE)], config_file=False, messages=False
    )
    made.set_option("run:patch", ["_exit"])  # a rank whose peer is gone ends so
    made.set_option("run:disable_warnings", ["module-not-imported", "no-data-collected"])
    made.set_option("report:exclude_lines", [])
    return made


@contextmanager
def traced() -> Iterator[None]:
    """Measure until the block ends, where the environment says where to."""
    folder = os.environ.get(TRACED_TO)
    if not folder:
        yield
        return
    measured = tracer(Path(folder))
    measured.start()
    try:
        yield
    finally:
        measured.stop()
        measured.save()


def pytest_sessionstart(session: pytest.Session) -> None:
    """Measure a whole run of pytest, with this module as its plugin."""
    session.config.stash[RUN] = run = traced()
    run.__enter__()


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Write down which lines it ran."""
    session.config.stash[RUN].__exit__(None, None, None)
