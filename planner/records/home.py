"""Where data is kept: the user's data folder, the records in it, those that ship, and paths that the user names."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from planner.errors import UsageError
from planner.rows import CATALOG

CPU_LOCAL = "cpu-local"
"""Id of the machine's own CPU, for which no catalogue has a row."""

SHIPPED = CATALOG / "records"
"""Records of the package."""

NO_HOME = Path("/nonexistent")
"""The home of a user who has none, as Debian has it in /etc/passwd (Debian Policy 4.7, section 9.2.3)."""


def user_path(name: str) -> Path:
    """The path that a user named, with `~` for the home folder; as it is written where that is not known.

    Raises:
        UsageError: no path can be called that.
    """
    if "\0" in name:
        raise UsageError("a path holds a null character", hint="no file can be named like that")
    return Path(os.path.expanduser(name))


def _home() -> Path:
    """The user's home folder; `NO_HOME`, where nothing lies, for a user without the variable and an entry in passwd."""
    try:
        return Path.home()
    except RuntimeError:
        return NO_HOME


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
        return _home() / "Library" / "Application Support" / "mpplan"
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or _home() / "AppData" / "Local") / "mpplan"
    return _home() / ".local" / "share" / "mpplan"


def records_dir() -> Path:
    """Where the user's own records are kept: `records` in the data folder."""
    return data_dir() / "records"


def any_records() -> bool:
    """Whether there is any record at all: asked before anything that reads them is loaded."""
    return any(os.path.isdir(place) and any(place.glob("*.jsonl*")) for place in (records_dir(), SHIPPED))
