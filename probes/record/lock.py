"""One probe per record: the lock on a record file while it is written, and the name of its holder.

The operating system's lock on the file ends with the process that holds it, however that process ends, so no lock is
ever left behind. A file beside the record names the holder, for the message to a second process; nothing depends on it.
"""

from __future__ import annotations

import json
import os
import socket
import sys
from contextlib import suppress
from pathlib import Path

from planner.errors import UsageError

_FAR_BYTE = 1 << 40
"""Windows locks bytes and makes them unreadable for others; this one is beyond the end of any record."""


class RecordLock:
    """The right to write to a record file, from construction until `release`."""

    def __init__(self, path: Path) -> None:
        """Take the lock; a missing file is created, with its folder.

        Raises:
            UsageError: another process holds it.
            OSError: the file cannot be written.
        """
        self.path = path
        path.parent.mkdir(parents=True, exist_ok=True)
        self._made = not path.exists()
        self._handle: int | None = os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0), 0o666)
        if not _locked(self._handle):
            os.close(self._handle)
            self._handle = None
            raise _held(path, "wait until it has ended, or start a separate record with `-o`")
        with suppress(OSError):  # the file only serves a message
            _beside(path).write_text(json.dumps({"pid": os.getpid(), "host": socket.gethostname()}), encoding="utf-8")

    def release(self) -> None:
        """Let others write to the file; delete it if it was created for the lock and is still empty."""
        if self._handle is None:
            return
        with suppress(OSError):
            _beside(self.path).unlink(missing_ok=True)
        with suppress(OSError):
            if self._made and os.fstat(self._handle).st_size == 0 and sys.platform != "win32":
                self.path.unlink(missing_ok=True)
        os.close(self._handle)
        self._handle = None


def must_be_free(path: Path) -> None:
    """Check that no process writes to a record file, which is about to be removed; one that cannot be opened is free.

    Raises:
        UsageError: another process holds its lock.
    """
    if not path.is_file():  # opening a pipe would wait for a writer
        return
    try:
        handle = os.open(path, os.O_RDWR | getattr(os, "O_CLOEXEC", 0))
    except OSError:
        return
    try:
        if not _locked(handle):
            raise _held(path, "wait until it has ended, or stop it first")
    finally:
        os.close(handle)


def _held(path: Path, hint: str) -> UsageError:
    return UsageError(f"`{path}` is being measured by {_holder(path)}", hint=hint)


def _locked(handle: int) -> bool:
    """Take the system's lock on an open file; return False if another process has it.

    A file system without locks (some network file systems) gives none; the record is then written without protection.
    """
    try:
        if sys.platform == "win32":
            import msvcrt

            os.lseek(handle, _FAR_BYTE, os.SEEK_SET)
            msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)
        else:
            import fcntl

            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (BlockingIOError, PermissionError):
        return False
    except OSError:
        return True
    return True


def _beside(path: Path) -> Path:
    return path.with_name(path.name + ".lock")


def _holder(path: Path) -> str:
    """Return who holds the lock, as far as that is known."""
    try:
        holder = json.loads(_beside(path).read_text(encoding="utf-8"))
        pid, host = int(holder["pid"]), str(holder["host"])
    except (OSError, ValueError, KeyError, TypeError):
        return "another process"
    return f"process {pid}" if host == socket.gethostname() else f"process {pid} on {host}"
