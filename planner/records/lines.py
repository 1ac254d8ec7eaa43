"""The lines of a record file, one at a time, whatever it really is: no line, however long, and no device is read whole.

A record is a regular file or a pipe. A pipe that nobody writes is empty rather than waited for.
"""

from __future__ import annotations

import gzip
import os
import stat
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from planner.errors import UsageError
from planner.records.problem import Problems
from planner.units import MIB

MAX_LINE_BYTES = int(MIB)
"""Longest line that is read; the longest of a real record have a few thousand bytes."""

_KINDS = (
    (stat.S_ISDIR, "it is a directory"),
    (stat.S_ISCHR, "it is a device"),
    (stat.S_ISBLK, "it is a device"),
    (stat.S_ISSOCK, "it is a socket"),
)


def numbered_lines(path: Path, problems: Problems) -> Iterator[tuple[int, str]]:
    """Numbered non-empty lines; a line that is too long or no UTF-8, and a cut-off archive, are problems.

    Raises:
        UsageError: the file is missing, cannot be opened, or is a directory, a device or a socket.
    """
    with _opened(path) as raw:
        stream = gzip.GzipFile(fileobj=raw) if path.suffix == ".gz" else raw
        number = 0
        try:
            while line := stream.readline(MAX_LINE_BYTES + 1):
                number += 1
                if len(line) > MAX_LINE_BYTES:
                    problems.add(number, "expected a line of at most 1 MiB")
                    while line and not line.endswith(b"\n"):
                        line = stream.readline(MAX_LINE_BYTES)
                    continue
                try:
                    text = line.decode("utf-8")
                except UnicodeDecodeError:
                    problems.add(number, "expected UTF-8 text")
                    continue
                if text.strip():
                    yield number, text
        except (EOFError, OSError, zlib.error) as error:
            problems.add(number + 1, f"the file ends early: {error}")


def why_no_file(mode: int) -> str | None:
    """Why something of this mode (`st_mode`) cannot be a record; None for a file or a pipe."""
    return next((why for is_kind, why in _KINDS if is_kind(mode)), None)


def _opened(path: Path) -> IO[bytes]:
    try:
        handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
        why = why_no_file(os.fstat(handle).st_mode)
        if why is not None:
            os.close(handle)
            raise UsageError(f"cannot read `{path}`: {why}", hint="name a record file (.jsonl or .jsonl.gz)")
        if hasattr(os, "set_blocking"):
            os.set_blocking(handle, True)
        return os.fdopen(handle, "rb")
    except (OSError, ValueError) as error:  # ValueError: a NUL in the name
        why = getattr(error, "strerror", None) or str(error)
        raise UsageError(f"cannot read `{path}`: {why}", hint="check the path") from error
