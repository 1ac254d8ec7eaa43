"""Index of the record store: the facts for choosing between records, cached from one run to the next.

`index.json` in the store holds a summary of every record, with the size and times of its file. A record is read again
if its file has a different size or time. All records are read again if the rules for reading and judging them have
changed. The index only saves time: it may be missing, damaged or impossible to write, and a record that is chosen from
it is read and judged before it is used.
"""

from __future__ import annotations

import json
import os
import time
import zlib
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict
from functools import cache
from pathlib import Path
from typing import Any

from planner.files import replace_file
from planner.lazy import dataclass
from planner.rows import CATALOG

SCHEMA = "mpplan.index/1"
FILE_NAME = "index.json"
RULES = (*sorted(Path(__file__).parent.glob("*.py")), CATALOG / "gpus.csv")
"""Files that determine a summary: the modules of this package, and the catalogue with the peaks that rates are compared
with."""
SETTLED_NS = 2_000_000_000
"""Age of a file below which it is not cached: it may be written again with the same times within two seconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FileState:
    """Size and times of a file, which change when it is written."""

    size_bytes: int
    mtime_ns: int
    ctime_ns: int

    @classmethod
    def of(cls, status: os.stat_result) -> FileState:
        """Return the state from the status that the system reports."""
        return cls(size_bytes=status.st_size, mtime_ns=status.st_mtime_ns, ctime_ns=status.st_ctime_ns)

    @property
    def settled(self) -> bool:
        """Whether any later change of the file is certain to change its times."""
        return max(self.mtime_ns, self.ctime_ns) + SETTLED_NS < time.time_ns()


def read_index(store: Path) -> dict[str, tuple[FileState, dict[str, Any]]]:
    """Read the cached summaries by file name; empty if there is no index of the current rules."""
    try:
        document = json.loads((store / FILE_NAME).read_bytes())
        if (document["schema"], document["rules"]) != (SCHEMA, _rules()):
            return {}
        return {name: (FileState(**entry["file"]), entry["summary"]) for name, entry in document["records"].items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return {}


def write_index(store: Path, entries: Mapping[str, tuple[FileState, Mapping[str, Any]]]) -> None:
    """Write these summaries atomically; do nothing if the store cannot be written."""
    records = {
        name: {"file": asdict(state), "summary": dict(summary)}
        for name, (state, summary) in entries.items()
        if state.settled
    }
    text = json.dumps({"schema": SCHEMA, "rules": _rules(), "records": records}, separators=(",", ":"))
    with suppress(OSError):
        replace_file(store / FILE_NAME, text.encode())


@cache
def _rules() -> int:
    """Checksum of the rules, so that an index of another version of the program is not used."""
    return zlib.crc32(b"".join(path.read_bytes() for path in RULES))
