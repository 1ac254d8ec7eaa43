"""The lines of a record file, one at a time and safely: a line beyond the limit is never held in memory."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator
from pathlib import Path

from planner.files import open_file
from planner.records.problem import Problems
from planner.units import MIB

MAX_LINE_BYTES = int(MIB)
"""Longest line that is read; the longest lines of real records have a few thousand bytes."""

LARGEST_BYTES = 64 * 2**30
"""Largest file that is read. A record holds a few kilobytes per point; its lines are read one at a time."""


def numbered_lines(path: Path, problems: Problems) -> Iterator[tuple[int, str]]:
    """Yield numbered non-empty lines; lines that are too long or not UTF-8 and truncated archives become problems.

    Raises:
        UsageError: the file is missing or may not be read.
        InputFileError: it is not a regular file.
    """
    with open_file(path, most_bytes=LARGEST_BYTES) as raw:
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
                    text = line.decode("utf-8-sig" if number == 1 else "utf-8")  # Windows editors add a BOM
                except UnicodeDecodeError:
                    problems.add(number, "expected UTF-8 text")
                    continue
                if text.strip():
                    yield number, text
        except gzip.BadGzipFile as error:
            problems.add(number + 1, f"expected a gzip archive, as the name says: {error}")
        except (EOFError, OSError, zlib.error) as error:
            problems.add(number + 1, f"the file ends early: {error}")
