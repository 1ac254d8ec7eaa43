"""The file beside a record that holds the full findings of each instrument, part by part.

Each line is one JSON object with its key. If two lines have the same key, the last one counts; a truncated line is
removed.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from planner.records.lines import numbered_lines
from planner.records.problem import Problems
from planner.records.store import PARTS_SUFFIX
from probes.record.writer import mend, unwritable

PART_SCHEMA = "mpplan.numerics-part/1"

Plain = dict[str, Any]


def parts_path(record: Path) -> Path:
    """Return the path of the parts file: `name.parts.jsonl` beside `name.jsonl`."""
    return record.with_name(record.name.removesuffix(".jsonl") + PARTS_SUFFIX)


class PartFile:
    """Finished parts by key, stored on disk."""

    def __init__(self, record: Path) -> None:
        """Read the existing parts; the file is created when the first part is added.

        Args:
            record: the record that the parts belong to.

        Raises:
            UsageError: the file cannot be read or written.
        """
        self.path = parts_path(record)
        self.known: dict[str, Plain] = {}
        try:
            if self.path.exists():
                mend(self.path)
        except OSError as error:
            raise unwritable(self.path, error) from error
        if self.path.exists():
            self.known = read_parts(self.path)

    def add(self, key: str, document: Plain) -> Plain:
        """Write a part, wait until it is on disk, and return it as it will be read back.

        Raises:
            UsageError: the disk is full.
            ValueError: a figure is NaN or infinite (a bug in an instrument).
        """
        line = json.dumps({"schema": PART_SCHEMA, "key": key, "document": document}, allow_nan=False)
        try:
            with self.path.open("a", encoding="utf-8") as file:
                file.write(line + "\n")
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            raise unwritable(self.path, error) from error
        self.known[key] = json.loads(line)["document"]
        return self.known[key]

    def forget(self, task: str, but: str) -> None:
        """Delete every part of a task except one key, because the findings will not apply to the corrected task.

        Raises:
            UsageError: the disk is full.
        """
        kept = {key: part for key, part in self.known.items() if key == but or f"/{task}/" not in f"{key}/"}
        lines = [json.dumps({"schema": PART_SCHEMA, "key": key, "document": part}) + "\n" for key, part in kept.items()]
        whole = self.path.with_name(f"{self.path.name}.new")
        try:
            whole.write_text("".join(lines), encoding="utf-8")
            whole.replace(self.path)
        except OSError as error:
            raise unwritable(self.path, error) from error
        self.known = kept

    def remove(self) -> None:
        """Delete the file, which holds nothing that a later run could continue from."""
        with suppress(OSError):
            self.path.unlink(missing_ok=True)

    def keeper(self, scope: str) -> Callable[[str, Callable[[], Plain]], Plain]:
        """Return the `Keep` function of an instrument, which stores its results under keys below the scope."""

        def keep(key: str, compute: Callable[[], Plain]) -> Plain:
            whole = f"{scope}/{key}"
            return self.known[whole] if whole in self.known else self.add(whole, compute())

        return keep


def read_parts(path: Path) -> dict[str, Plain]:
    """Read the parts by key; damaged lines and lines of another format are left out.

    Raises:
        UsageError: the file is missing or cannot be read.
    """
    parts: dict[str, Plain] = {}
    for _, text in numbered_lines(path, Problems()):
        try:
            line = json.loads(text)
        except ValueError:
            continue
        if isinstance(line, dict) and line.get("schema") == PART_SCHEMA and isinstance(line.get("document"), dict):
            parts[str(line.get("key"))] = line["document"]
    return parts
