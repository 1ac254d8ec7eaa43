"""Where data is kept: the user's data folder, the records in it, and the records that ship with the package."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from planner.rows import CATALOG

CPU_LOCAL = "cpu-local"
"""Id of the machine's own CPU, for which no catalogue has a row."""

SHIPPED = CATALOG / "records"
"""Records of the package."""


def data_dir() -> Path:
    r"""The user's data folder of mpplan; it need not exist.

    `$XDG_DATA_HOME/mpplan` where that is an absolute path (relative ones are to be ignored: XDG Base Directory
    Specification 0.8), else `~/.local/share/mpplan`, `~/Library/Application Support/mpplan` on macOS,
    `%LOCALAPPDATA%\mpplan` on Windows.
    """
    given = os.environ.get("XDG_DATA_HOME", "")
    if given and Path(given).is_absolute():
        return Path(given) / "mpplan"
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Application Support" / "mpplan"
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local") / "mpplan"
    return Path.home() / ".local" / "share" / "mpplan"


def records_dir() -> Path:
    """Where the user's own records are kept: `records` in the data folder."""
    return data_dir() / "records"


def any_records() -> bool:
    """Whether there is any record at all: asked before anything that reads them is loaded."""
    return any(place.is_dir() and any(place.glob("*.jsonl*")) for place in (records_dir(), SHIPPED))
