"""Runs the program the way a shell does, in this process (fast) or in one of its own (for what only that can show)."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from mpplan.app import main
from mpplan.ui.progress import Pace

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """What a shell sees of a command."""

    code: int
    out: str
    err: str


def unwrapped(text: str) -> str:
    """Messages as they read, each on one line, whatever the width of the terminal."""
    return re.sub(r"\n  (?=\S)", " ", text)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Empty working and user directories: nothing of the developer's own settings reaches a test."""
    for name in ("HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME"):
        monkeypatch.setenv(name, str(tmp_path / "home"))
    monkeypatch.setenv("COLUMNS", "100")
    folder = tmp_path / "here"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder


@pytest.fixture
def nothing_ships(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No record comes with the package: the user's are the only ones."""
    for module in ("home", "store"):
        monkeypatch.setattr(f"planner.records.{module}.SHIPPED", tmp_path / "no-records")


@pytest.fixture
def run(home: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Callable[..., Result]:
    """Run `mpplan` with these arguments in this process; a plan that takes long on a loaded machine does not say so."""
    monkeypatch.setattr("mpplan.ui.progress.IN_LOG", Pace(first_s=600.0, every_s=600.0))

    def runner(*arguments: str) -> Result:
        capsys.readouterr()
        code = main(arguments)
        captured = capsys.readouterr()
        return Result(code=code, out=captured.out, err=unwrapped(captured.err))

    return runner


@pytest.fixture
def shell(home: Path) -> Callable[..., Result]:
    """Run `mpplan` with these arguments in a process of its own."""

    def runner(*arguments: str, **environment: str) -> Result:
        import os

        done = subprocess.run(
            [sys.executable, "-m", "mpplan", *arguments],
            capture_output=True,
            text=True,
            check=False,
            env={**os.environ, "PYTHONPATH": str(ROOT), "PYTHONWARNINGS": "error", **environment},
        )
        return Result(code=done.returncode, out=done.stdout, err=unwrapped(done.stderr))

    return runner
