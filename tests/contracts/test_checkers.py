"""Style, types and import directions are part of the tests: the house stays as it was drawn."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
BIN = Path(sys.executable).parent


@pytest.mark.parametrize(
    "command",
    [("ruff", "check", "--quiet", "."), ("ruff", "format", "--check", "."), ("mypy",), ("lint-imports", "--no-cache")],
    ids=[
        "ruff finds nothing",
        "every file is formatted",
        "mypy --strict finds nothing",
        "imports point down only, without a cycle",
    ],
)
def test_the_checker_is_content(command):
    done = subprocess.run([BIN / command[0], *command[1:]], cwd=ROOT, capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stdout + done.stderr
