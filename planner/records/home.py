"""Where records are: the user's store, and the records that ship with the package."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from planner.rows import CATALOG

CPU_LOCAL = "cpu-local"
"""Id of the machine's own CPU, for which no catalogue has a row."""

SHIPPED = CATALOG / "records"
"""Records of the package."""


def records_dir() -> Path:
    """Directory of user records: `$XDG_DATA_HOME/mpplan/records`, or the platform's directory for user data."""
    home = os.environ.get("XDG_DATA_HOME")
    if home:
        return Path(home) / "mpplan" / "records"
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Application Support" / "mpplan" / "records"
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local") / "mpplan" / "records"
    return Path.home() / ".local" / "share" / "mpplan" / "records"


def any_records() -> bool:
    """Whether there is any record at all; cheap, so that nothing that reads records need be loaded."""
    return any(place.is_dir() and any(place.glob("*.jsonl*")) for place in (records_dir(), SHIPPED))
