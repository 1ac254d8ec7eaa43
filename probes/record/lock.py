"""One probe per record: the lock on a record file while it is written, and who holds it.

The system's own lock on the file ends with the process that holds it, however that ends, so none is ever left behind.
Beside the record stands who holds it, for the message to the second one; nothing depends on that file.
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
"""Windows locks bytes, and nobody can read those: one that no record reaches."""


class RecordLock:
    """The right to write to a record file, from when it is made until `release`."""

    def __init__(self, path: Path) -> None:
        """Take the lock; a file that is not there yet is made, with its folder.

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
            raise UsageError(
                f"`{path}` is being measured by {_holder(path)}",
                hint="wait until it has ended, or start a record of its own with `-o`",
            )
        with suppress(OSError):  # it only words a message
            _beside(path).write_text(json.dumps({"pid": os.getpid(), "host": socket.gethostname()}), encoding="utf-8")

    def release(self) -> None:
        """Let others write to it; a file that was made for the lock and is still empty goes."""
        if self._handle is None:
            return
        with suppress(OSError):
            _beside(self.path).unlink(missing_ok=True)
        with suppress(OSError):
            if self._made and os.fstat(self._handle).st_size == 0 and sys.platform != "win32":
                self.path.unlink(missing_ok=True)
        os.close(self._handle)
        self._handle = None


def _locked(handle: int) -> bool:
    """Take the system's lock on an open file; False where another process has it.

    A file system without locks (some network file systems) gives none: then the record is written unguarded.
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
    """Who holds the lock, as far as is known."""
    try:
        holder = json.loads(_beside(path).read_text(encoding="utf-8"))
        pid, host = int(holder["pid"]), str(holder["host"])
    except (OSError, ValueError, KeyError, TypeError):
        return "another process"
    return f"process {pid}" if host == socket.gethostname() else f"process {pid} on {host}"
