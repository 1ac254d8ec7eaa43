"""Where data is kept: the user's data folder, the records in it, those that ship, and paths that the user names."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Iterable
from pathlib import Path

from planner.errors import UsageError
from planner.rows import CATALOG
from planner.text import shortened

CPU_LOCAL = "cpu-local"
"""Id of the machine's own CPU, for which no catalogue has a row."""

SHIPPED = CATALOG / "records"
"""Records of the package, each named for its GPU and its day: `h200-sxm-141gb-2026-11-27.jsonl.gz`."""

NAMED = "named"
"""Folder there of those that plans use only where they are named: real runs say more about these GPUs (decision 35)."""


def of_package(path: Path) -> bool:
    """Whether a record came with the package."""
    return path.parent.resolve() in (SHIPPED.resolve(), SHIPPED.resolve() / NAMED)


def record_path(name: str) -> Path:
    """The file or folder of records that a user named; or the user's own or the package's record of that name.

    Raises:
        UsageError: as `user_path`.
    """
    path = user_path(name)
    if path.exists() or path.name != name:
        return path
    folders = (*([records_dir()] if has_data_dir() else []), SHIPPED, SHIPPED / NAMED)
    files = (folder / f"{name}{ending}" for folder in folders for ending in ("", ".jsonl", ".jsonl.gz"))
    return next((file for file in files if file.is_file()), path)


def user_path(name: str) -> Path:
    """The path that a user named, with `~` for the home folder; as it is written where that is not known.

    Raises:
        UsageError: no path can be called that, or the system does not let us look there.
    """
    if not name.strip():
        raise UsageError("the name of a file is empty", hint="name a file, or leave it out")
    if "\0" in name:
        raise UsageError("a path holds a null character", hint="no file can be named like that")
    return _within_reach(Path(os.path.expanduser(name)))


_MISSING = (errno.ENOENT, errno.ENOTDIR)


def _within_reach(path: Path) -> Path:
    """The path, which need not exist, unless the system refuses to look for it: its name is too long, a folder is shut.

    Raises:
        UsageError: it does, or no file can have the name; `Path.exists` and its like would raise an `OSError` or a
            `UnicodeEncodeError` wherever they are first called.
    """
    try:
        path.stat()
    except OSError as error:
        if error.errno not in _MISSING:
            raise UsageError(
                f"cannot use `{shortened(str(path))}`: {error.strerror}", hint="check the path and its permissions"
            ) from error
    except UnicodeEncodeError as error:
        shown = shortened(str(path).encode(errors="backslashreplace").decode())
        raise UsageError(
            f"cannot use `{shown}`: it holds half of a character", hint="no file can be named like that"
        ) from error
    return path


def data_dir() -> Path:
    r"""The user's data folder of mpplan; it need not exist.

    `$XDG_DATA_HOME/mpplan` where that is an absolute path (relative ones are to be ignored: XDG Base Directory
    Specification 0.8), else `~/.local/share/mpplan`, `~/Library/Application Support/mpplan` on macOS,
    `%LOCALAPPDATA%\mpplan` on Windows.

    Raises:
        UsageError: it would be in the user's home directory, and the system knows of none; or the system does not let
            us look there.
    """
    return _within_reach(_data_dir())


def _data_dir() -> Path:
    given = os.environ.get("XDG_DATA_HOME", "")
    if given and Path(given).is_absolute():
        return Path(given) / "mpplan"
    if sys.platform == "win32" and os.environ.get("LOCALAPPDATA"):
        return Path(os.environ["LOCALAPPDATA"]) / "mpplan"
    try:
        home = Path.home()
    except RuntimeError as error:  # a user id without HOME and without a passwd entry, as containers have
        raise UsageError(
            "there is no folder for your data: this user has no home directory",
            hint="set XDG_DATA_HOME or HOME to a folder of your own",
        ) from error
    if sys.platform == "darwin":
        return home / "Library" / "Application Support" / "mpplan"
    if sys.platform == "win32":
        return home / "AppData" / "Local" / "mpplan"
    return home / ".local" / "share" / "mpplan"


def has_data_dir() -> bool:
    """Whether there is a place for the user's data that the system lets us look into; what only reads goes on without.

    A service often has none: its user has no home directory, or is kept out of it.
    """
    try:
        _within_reach(_data_dir() / "records")
    except UsageError:
        return False
    return True


def records_dir() -> Path:
    """Where the user's own records are kept: `records` in the data folder.

    Raises:
        UsageError: as `data_dir`.
    """
    return data_dir() / "records"


def any_records(gpus: Iterable[str] = ()) -> bool:
    """Whether there is any record of the user's, or one of some GPUs in the package.

    Asked before anything that reads records is loaded.

    Args:
        gpus: catalogue ids.
    """
    if has_data_dir() and os.path.isdir(records_dir()) and any(records_dir().glob("*.jsonl*")):
        return True
    return any(path for gpu in gpus for path in SHIPPED.glob(f"{gpu}-*.jsonl*"))
