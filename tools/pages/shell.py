"""A terminal with 80 columns in an empty folder, where the commands of a page run as a reader would type them."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SETTINGS = ("MPPLAN_", "XDG_", "PYTHON", "COLUMNS")
"""Prefixes of environment variables that would change the output of a command."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """The terminal output of one command."""

    command: str
    """As typed."""
    code: int
    """Exit code of the command."""
    out: str
    """Output on stdout."""
    err: str
    """Output on stderr."""

    @property
    def shown(self) -> str:
        """Return stdout, then stderr: the text above the next prompt."""
        return self.out + self.err


@dataclass(slots=True)
class Shell:
    """A POSIX shell that runs `mpplan` from this source tree, with its files and settings in one folder."""

    folder: Path
    """Working directory, which also holds the user's records, prices and defaults."""
    results: list[Result] = field(default_factory=list)
    """Results of the commands so far."""

    def run(self, command: str) -> Result:
        """Run one command line, including pipes and redirections.

        Args:
            command: as typed; `mpplan` needs no path.
        """
        tools = self.folder / ".tools"
        tools.mkdir(exist_ok=True)
        program = tools / "mpplan"
        program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m mpplan "$@"\n', encoding="utf-8")
        program.chmod(0o755)
        usual = {name: text for name, text in os.environ.items() if not name.startswith(SETTINGS)}
        own = {name: str(self.folder / ".own") for name in ("HOME", "XDG_DATA_HOME", "XDG_CONFIG_HOME")}
        environment = usual | own | {
            "PATH": f"{tools}{os.pathsep}{os.environ['PATH']}", "PYTHONPATH": str(ROOT), "NO_COLOR": "1",
        }  # fmt: skip
        if " | " not in command:  # a shell does not export its width, and a pipe has none
            environment["COLUMNS"] = "80"
        done = subprocess.run(
            ["sh", "-c", command], cwd=self.folder, env=environment, capture_output=True, encoding="utf-8", check=False
        )
        result = Result(command=command, code=done.returncode, out=done.stdout, err=_without_progress(done.stderr))
        self.results.append(result)
        return result


def _without_progress(text: str) -> str:
    """Return stderr without progress lines, which only a slow machine prints (`mpplan.ui.progress`)."""
    return "".join(line for line in text.splitlines(keepends=True) if not _PROGRESS.search(line))


_PROGRESS = re.compile(r", (about )?\d+ s (so far|left)$")
