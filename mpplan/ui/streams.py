"""Handle standard streams that the caller closed (`>&-`) or left unbuffered, or whose reader has gone away."""

from __future__ import annotations

import os
import sys
from io import RawIOBase
from typing import TextIO

_STREAMS = (("stdin", "r", os.O_RDONLY), ("stdout", "w", os.O_RDONLY), ("stderr", "w", os.O_WRONLY))
"""In the order of their descriptors. The null device for stdout is opened read-only, so an answer that nobody can
read is an error (exit code 2), as on a full disk. Output to stderr may be lost, and stdin is empty."""


def open_streams() -> None:
    """Open the null device for each closed standard stream, so that no other file gets its descriptor."""
    for name, mode, access in _STREAMS:
        if getattr(sys, name) is None:
            descriptor = os.open(os.devnull, access)
            setattr(sys, name, open(descriptor, mode, encoding="utf-8", errors="replace"))  # noqa: SIM115 - it stays


def buffered(stream: TextIO) -> TextIO:
    """Return a stream that writes all of a text or raises, over the same descriptor; the stream itself if it does.

    Without a buffer (`python -u`, `PYTHONUNBUFFERED`), Python passes a text to the system once and does not look at how
    much of it was written: on a disk that fills up, the end of an answer would be lost without an error. The new stream
    writes at the end of each line, so its reader waits no longer.
    """
    if not isinstance(getattr(stream, "buffer", None), RawIOBase):
        return stream
    return open(stream.fileno(), "w", buffering=1, encoding=stream.encoding, errors=stream.errors, closefd=False)


def silence(stream: TextIO) -> None:
    """Redirect a stream to the null device, so that the interpreter's last flush of it succeeds."""
    with open(os.devnull, "wb") as sink:
        os.dup2(sink.fileno(), stream.fileno())
