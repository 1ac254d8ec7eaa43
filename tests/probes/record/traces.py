"""Reads the traces beside a record, to compare them with what was written."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from probes.record.writer import TRACE_SCHEMA
from probes.sensors.interface import Reading, State, Trace


def read_traces(path: Path) -> dict[str, Trace]:
    """Traces by probe id; a line that was cut off is left out."""
    traces: dict[str, Trace] = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        try:
            document = json.loads(line)
        except json.JSONDecodeError:
            continue
        assert document["schema"] == TRACE_SCHEMA
        traces[document["probe_id"]] = Trace(
            readings=tuple(Reading(**row) for row in _rows(document["readings"])),
            states=tuple(State(**row) for row in _rows(document["states"])),
        )
    return traces


def _rows(columns: dict[str, list[Any]]) -> list[dict[str, Any]]:
    return [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]
