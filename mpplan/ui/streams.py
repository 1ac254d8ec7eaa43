"""The standard streams where the caller closed them (`>&-`), or where what takes them went away."""

from __future__ import annotations

import os
import sys
from typing import TextIO

_STREAMS = (("stdin", "r", os.O_RDONLY), ("stdout", "w", os.O_RDONLY), ("stderr", "w", os.O_WRONLY))
"""In the order of their numbers. The null device for stdout is not open for writing: an answer that nobody can read is
an error (exit 2), as it is on a full disk. What is said on stderr may be lost, and stdin is empty."""


def open_streams() -> None:
    """Put the null device where a standard stream is closed, so that no file of the program takes its number."""
    for name, mode, access in _STREAMS:
        if getattr(sys, name) is None:
            descriptor = os.open(os.devnull, access)
            setattr(sys, name, open(descriptor, mode, encoding="utf-8", errors="replace"))  # noqa: SIM115 - it stays


def silence(stream: TextIO) -> None:
    """Send a stream to the null device, so that the interpreter's last flush of it succeeds."""
    with open(os.devnull, "wb") as sink:
        os.dup2(sink.fileno(), stream.fileno())
