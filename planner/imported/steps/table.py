"""Steps in a table of one's own: CSV with a header, or JSON Lines.

Columns, in any order, others are ignored: `step_time_s` or `step_time_ms` (the duration of a step), `timestamp` (when
it ended), `step` (its number), `global_batch` (sequences). A duration or a timestamp must be there.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator, Mapping

from planner.imported.source import SourceFile
from planner.imported.steps.log import LoggedStep, StepFormat, StepLog, step_log
from planner.runlog.amounts import as_number
from planner.runlog.moments import Moment, parse_moment
from planner.text import shortened
from planner.units import MILLI

DURATIONS = {"step_time_s": 1.0, "step_time_ms": MILLI}
"""Columns of a duration, with its unit in seconds."""
MOST_CHARACTERS = 100_000
"""Of a line; the reader of CSV refuses longer cells."""


def _recognises(head: str) -> bool:
    first = head.lstrip().partition("\n")[0].strip()
    if first.startswith("{"):
        try:
            names = set(json.loads(first[:MOST_CHARACTERS]))
        except (ValueError, RecursionError, TypeError):
            return False
    else:
        names = {name.strip().strip('"') for name in first.split(",")}
    return bool(names & {*DURATIONS}) or names >= {"step", "timestamp"}


def _read(source: SourceFile) -> StepLog:
    is_json = source.head.lstrip().startswith("{")
    logged = [_step(source, line, cells) for line, cells in (_json_rows(source) if is_json else _csv_rows(source))]
    return step_log(source, "", logged, ())


def _csv_rows(source: SourceFile) -> Iterator[tuple[int, Mapping[str, object]]]:
    reader = csv.reader(source.text.splitlines(), skipinitialspace=True)
    try:
        names = [name.strip() for name in next(reader)]
        for cells in reader:
            if any(cell.strip() for cell in cells):
                if len(cells) != len(names):
                    raise source.fail(reader.line_num, f"expected {len(names)} cells, found {len(cells)}")
                yield reader.line_num, dict(zip(names, cells, strict=True))
    except csv.Error as error:
        raise source.fail(reader.line_num, f"expected CSV: {error}") from None


def _json_rows(source: SourceFile) -> Iterator[tuple[int, Mapping[str, object]]]:
    for line, text in source.lines():
        row = source.parse_json(text, line)
        if not isinstance(row, dict):
            raise source.fail(line, "expected a JSON object")
        yield line, row


def _step(source: SourceFile, line: int, row: Mapping[str, object]) -> LoggedStep:
    column = next((name for name in DURATIONS if row.get(name) not in (None, "")), None)
    duration_s = None
    if column is not None:
        duration_s = source.number(line, column, row[column], above_zero=True) * DURATIONS[column]
    step, batch = row.get("step"), row.get("global_batch")
    return LoggedStep(
        line=line,
        number=None if step in (None, "") else int(source.number(line, "step", step)),
        duration_s=duration_s,
        end=_end(source, line, row.get("timestamp")),
        sequences=None if batch in (None, "") else source.number(line, "global_batch", batch),
    )


def _end(source: SourceFile, line: int, value: object) -> Moment | None:
    if value in (None, ""):
        return None
    moment = parse_moment(value)
    if moment is None:
        found = shortened(str(value if as_number(value) is None else as_number(value))[:200])
        raise source.fail(line, f"timestamp: expected ISO 8601 or seconds since 1970, found `{found}`")
    return moment


TABLE = StepFormat(name="a table (CSV or JSON Lines)", recognises=_recognises, read=_read)
