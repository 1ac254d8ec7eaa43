"""Where the user's own books lie: the XDG data folder, and how they are read."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from planner.errors import UsageError


def data_dir() -> Path:
    r"""The user's data folder of mpplan; it need not exist.

    `$XDG_DATA_HOME/mpplan` where set to an absolute path (XDG Base Directory Specification 0.8), else
    `~/.local/share/mpplan`, `~/Library/Application Support/mpplan` on macOS, `%LOCALAPPDATA%\mpplan` on Windows.
    """
    given = os.environ.get("XDG_DATA_HOME", "")
    if given and Path(given).is_absolute():
        return Path(given) / "mpplan"
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Application Support" / "mpplan"
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA", str(Path.home() / "AppData" / "Local"))) / "mpplan"
    return Path.home() / ".local" / "share" / "mpplan"


def read_if_there(path: Path) -> str | None:
    """The text of a file, None where there is none.

    Raises:
        UsageError: it is there and cannot be read as UTF-8 text.
    """
    try:
        return path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"cannot read `{path}`: {error}", hint="repair it, or move it away") from error
