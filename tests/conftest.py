"""Hypothesis for every machine: no test may fail by the clock, and the same commit always gives the same verdict.

`make fuzz` looks further: thirty times the examples, each run other ones.
"""

from __future__ import annotations

import gc
import os
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from tests.shared import FOLDER

settings.register_profile(
    "steady", deadline=None, max_examples=34, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile(
    "fuzz", deadline=None, max_examples=1000, suppress_health_check=[HealthCheck.too_slow], print_blob=True
)
settings.load_profile("steady")

ROOT = Path(__file__).parent
SHORT_MODULES = ROOT / "pricing"
"""The folder whose modules are the shortest."""


def pytest_configure(config: pytest.Config) -> None:
    """Give the tests user folders of their own: records and settings of a developer's decide nothing here."""
    folder = tempfile.TemporaryDirectory(prefix="mpplan-tests-", ignore_cleanup_errors=True)
    config.add_cleanup(folder.cleanup)
    for name in ("XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME"):
        os.environ[name] = str(Path(folder.name) / name)
    if "PYTEST_XDIST_WORKER" not in os.environ:  # the workers, which are started later, share it
        shared = Path(folder.name) / "shared"
        shared.mkdir()
        os.environ[FOLDER] = str(shared)


def pytest_collection_finish() -> None:
    """Leave what is there before the first test out of each garbage collection: 12,000 tests and all of torch.

    The probe collects garbage before each group that it measures.
    """
    gc.collect()
    gc.freeze()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the shortest modules last: no worker is left with a long one while the others have nothing to do."""
    items.sort(key=lambda item: SHORT_MODULES in item.path.parents)
