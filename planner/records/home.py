"""Locations of data: the user's data folder and its records, shipped records, and paths that the user names."""

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
"""Id of the machine's own CPU, which has no row in the catalogue."""

SHIPPED = CATALOG / "records"
"""Records of the package, each named for its GPU and its day: `h200-sxm-141gb-2026-11-27.jsonl.gz`."""

NAMED = "named"
"""Subfolder of records that plans use only if named, since real runs say more about these GPUs (decision 35)."""


def of_package(path: Path) -> bool:
    """Whether a record came with the package."""
    return path.parent.resolve() in (SHIPPED.resolve(), SHIPPED.resolve() / NAMED)


def record_path(name: str) -> Path:
    """Resolve a name to the file or folder of records at that path, else to the stored or shipped record of that name.

    Raises:
        UsageError: as `user_path`; or the name has no folder in it, and is neither a file, a folder nor a record.
    """
    path = user_path(name)
    if path.exists() or path.name != name:
        return path
    folders = (*([records_dir()] if has_data_dir() else []), SHIPPED, SHIPPED / NAMED)
    files = (folder / f"{name}{ending}" for folder in folders for ending in ("", ".jsonl", ".jsonl.gz"))
    record = next((file for file in files if file.is_file()), None)
    if record is None:
        raise UsageError(
            f"`{shortened(name)}` is neither a file or folder here nor the name of a record",
            hint="`mpplan records list` lists the records",
        )
    return record


def user_path(name: str) -> Path:
    """Path that a user named, with `~` expanded to the home folder if that is known.

    Raises:
        UsageError: the name is not valid as a path, or the system denies access.
    """
    if not name.strip():
        raise UsageError("the name of a file is empty", hint="name a file, or leave it out")
    if "\0" in name:
        raise UsageError("a path contains a null character", hint="no file can be named like that")
    return _within_reach(Path(os.path.expanduser(name)))


_MISSING = (errno.ENOENT, errno.ENOTDIR)


def _within_reach(path: Path) -> Path:
    """Return the path, which need not exist, if the system can look it up.

    The lookup fails if, for example, the name is too long or a folder is inaccessible. Without this check,
    `Path.exists` and similar calls would raise an `OSError` or a `UnicodeEncodeError` wherever they come first.

    Raises:
        UsageError: the lookup fails, or no file can have the name.
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
            f"cannot use `{shown}`: it contains an incomplete character", hint="no file can be named like that"
        ) from error
    return path


def data_dir() -> Path:
    r"""The user's data folder of mpplan; it need not exist.

    It is `$XDG_DATA_HOME/mpplan` if that is an absolute path (relative paths must be ignored: XDG Base Directory
    Specification 0.8), otherwise `~/.local/share/mpplan`, `~/Library/Application Support/mpplan` on macOS,
    `%LOCALAPPDATA%\mpplan` on Windows.

    Raises:
        UsageError: it would be in the user's home directory, and there is none; or the system denies access.
    """
    return _within_reach(_data_dir())


def _data_dir() -> Path:
    data_home = os.environ.get("XDG_DATA_HOME", "")
    if data_home and Path(data_home).is_absolute():
        return Path(data_home) / "mpplan"
    if sys.platform == "win32" and os.environ.get("LOCALAPPDATA"):
        return Path(os.environ["LOCALAPPDATA"]) / "mpplan"
    try:
        home = Path.home()
    except RuntimeError as error:  # no HOME and no passwd entry for the user id, as in some containers
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
    """Whether the user's data has a location that the system lets us read; callers that only read do without it.

    A service often has none, because its user has no home directory or no access to it.
    """
    try:
        _within_reach(_data_dir() / "records")
    except UsageError:
        return False
    return True


def records_dir() -> Path:
    """Folder of the user's own records: `records` in the data folder.

    Raises:
        UsageError: as `data_dir`.
    """
    return data_dir() / "records"


def any_records(gpus: Iterable[str] = ()) -> bool:
    """Whether the user has any record, or the package has a record of one of these GPUs.

    This is checked before the modules that read records are loaded.

    Args:
        gpus: catalogue ids.
    """
    if has_data_dir() and os.path.isdir(records_dir()) and any(records_dir().glob("*.jsonl*")):
        return True
    return any(path for gpu in gpus for path in SHIPPED.glob(f"{gpu}-*.jsonl*"))
