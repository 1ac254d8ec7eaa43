"""Reading and writing record files: JSON Lines, one `Measurement` per line, `.gz` understood.

Reading never fails on content: unusable lines are reported with their number, the rest is used.
"""

from __future__ import annotations

import gzip
import json
import math
import typing
import zlib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from planner.files import open_file
from planner.records.flat import columns, flatten, nest
from planner.records.measurement import KINDS, QUALITIES, SCHEMA, STATUSES, Measurement

_CHOICES = {"status": STATUSES, "kind": KINDS, "quality": QUALITIES}
_MAY_BE_NEGATIVE = ("_c", "loss_trace", "monotonic_s")
_TIMELESS = ("support", "idle", "meter")
"""Kinds whose points have no time of their own."""
_POSITIVE = ("time_median_s", "tokens", "layers")


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordProblem:
    """Something wrong with one line of a record file."""

    line: int
    """Counted from 1; 0 where it concerns the whole file."""
    key: str | None
    what: str
    """What was expected and what was found."""
    used: bool = False
    """True where the line is used all the same (a contended point)."""

    def said_of(self, name: str) -> str:
        """The problem as `file:line: key: what`."""
        where = f"{name}:{self.line}" if self.line else name
        return f"{where}: {self.key}: {self.what}" if self.key else f"{where}: {self.what}"


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasurementFile:
    """The usable lines of a record file and what was wrong with the others."""

    measurements: tuple[Measurement, ...]
    problems: tuple[RecordProblem, ...]

    def latest(self) -> tuple[Measurement, ...]:
        """One line per probe id: the last, so that a point measured again replaces the earlier one."""
        newest: dict[str, Measurement] = {}
        for point in self.measurements:
            newest.pop(point.probe_id, None)
            newest[point.probe_id] = point
        return tuple(newest.values())


def to_line(measurement: Measurement) -> str:
    """One line of JSON without a line break; None and empty collections are left out.

    Raises:
        ValueError: a figure is NaN or infinite.
    """
    return json.dumps(flatten(measurement), separators=(",", ":"), allow_nan=False, ensure_ascii=False)


def read_measurements(path: Path) -> MeasurementFile:
    """Read a record file. Lines that cannot be used are reported; the usable ones are returned in order.

    A file holds one run on one device: lines of another run or device than most of the file are set aside.

    Raises:
        UsageError: the file is missing or cannot be opened.
    """
    parsed: list[tuple[int, Measurement]] = []
    problems: list[RecordProblem] = []
    for number, text in _lines(path, problems):
        outcome = parse_line(text, number)
        if isinstance(outcome, RecordProblem):
            problems.append(outcome)
        else:
            parsed.append((number, outcome))
    kept = _one_run(_one_device(parsed, problems), problems)
    problems.extend(_contended(number, point) for number, point in kept if point.sampling.quality == "contended")
    if not kept:
        problems.append(RecordProblem(line=0, key=None, what="no usable line"))
    problems.sort(key=lambda problem: problem.line)
    return MeasurementFile(measurements=tuple(point for _, point in kept), problems=tuple(problems))


def _lines(path: Path, problems: list[RecordProblem]) -> Iterator[tuple[int, str]]:
    """Numbered non-empty lines; bytes that are not UTF-8 or a cut-off archive end the file with a problem."""
    number = 0
    with open_file(path) as file, gzip.open(file, "rb") if path.suffix == ".gz" else file as stream:
        try:
            for line in stream:
                number += 1
                try:
                    text = line.decode("utf-8")
                except UnicodeDecodeError:
                    problems.append(RecordProblem(line=number, key=None, what="expected UTF-8 text"))
                    continue
                if text.strip():
                    yield number, text
        except (EOFError, OSError, zlib.error) as error:
            problems.append(RecordProblem(line=number + 1, key=None, what=f"the file ends early: {error}"))


def parse_line(text: str, number: int = 1) -> Measurement | RecordProblem:
    """One line as a measurement, or what is wrong with it."""
    try:
        document = json.loads(text)
    except (json.JSONDecodeError, RecursionError):
        cut = "" if text.endswith("\n") else ", the line is cut off"
        return RecordProblem(line=number, key=None, what=f"expected one JSON object{cut}")
    if not isinstance(document, dict):
        return RecordProblem(line=number, key=None, what=f"expected a JSON object, found {type(document).__name__}")
    schema = document.get("schema")
    if schema != SCHEMA:
        return RecordProblem(line=number, key="schema", what=f"expected `{SCHEMA}`, found `{schema}`")
    values: dict[str, object] = {}
    for column in columns():
        value = document.get(column.key)
        if value is None:
            if column.required:
                return RecordProblem(line=number, key=column.key, what="expected, but missing")
            continue
        try:
            values[column.key] = _value(column.key, column.type, value)
        except ValueError as error:
            return RecordProblem(line=number, key=column.key, what=str(error))
    if values["status"] == "ok" and values["kind"] not in _TIMELESS and "time_median_s" not in values:
        return RecordProblem(line=number, key="time_median_s", what="expected with status `ok`, but missing")
    return nest(values)


def _value(name: str, kind: object, value: object) -> object:
    """The value as the field's type.

    Raises:
        ValueError: what was expected and what was found.
    """
    if kind is float or kind is int:
        return _number(name, kind, value)
    if kind is bool or kind is str:
        if not isinstance(value, typing.cast(type, kind)):
            raise ValueError(f"expected {'true or false' if kind is bool else 'text'}, found `{value}`")
        if name in _CHOICES and value not in _CHOICES[name]:
            raise ValueError(f"expected one of {', '.join(_CHOICES[name])}, found `{value}`")
        return value
    if kind == dict[str, str]:
        if not isinstance(value, dict):
            raise ValueError(f"expected an object, found `{value}`")
        return {str(k): str(v) for k, v in value.items()}
    if not isinstance(value, list):
        raise ValueError(f"expected a list, found `{value}`")
    if kind == tuple[float, ...]:
        return tuple(_number(name, float, item) for item in value)
    return tuple(str(item) for item in value)


def _number(name: str, kind: object, value: object) -> float | int:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError(f"expected a number, found `{value}`")
    if not math.isfinite(value):
        raise ValueError(f"expected a finite number, found `{value}`")
    if value < 0 and not name.endswith(_MAY_BE_NEGATIVE):
        raise ValueError(f"expected a number that is not negative, found `{value}`")
    if value == 0 and name in _POSITIVE:
        raise ValueError("expected a number greater than 0, found `0`")
    if kind is int and value != int(value):
        raise ValueError(f"expected a whole number, found `{value}`")
    return int(value) if kind is int else float(value)


def _device(point: Measurement) -> tuple[str, str | None]:
    return point.device.name, point.device.uuid_hash


Numbered = list[tuple[int, Measurement]]


def _one_device(parsed: Numbered, problems: list[RecordProblem]) -> Numbered:
    if not parsed:
        return parsed
    most = Counter(_device(point) for _, point in parsed).most_common(1)[0][0]
    for number, point in parsed:
        if _device(point) != most:
            what = f"measured on another device, `{point.device.name}`, than most of the file, `{most[0]}`"
            problems.append(RecordProblem(line=number, key="device_name", what=what))
    return [(number, point) for number, point in parsed if _device(point) == most]


def _one_run(parsed: Numbered, problems: list[RecordProblem]) -> Numbered:
    if not parsed:
        return parsed
    most = Counter(point.run_id for _, point in parsed).most_common(1)[0][0]
    for number, point in parsed:
        if point.run_id != most:
            what = f"two records in one file: run `{point.run_id[:8]}` among the lines of run `{most[:8]}`"
            problems.append(RecordProblem(line=number, key="run_id", what=what))
    return [(number, point) for number, point in parsed if point.run_id == most]


def _contended(number: int, point: Measurement) -> RecordProblem:
    share = "an unknown part" if point.sampling.other_load_ratio is None else f"{point.sampling.other_load_ratio:.0%}"
    what = f"`{point.probe_id}` was measured while {share} of the machine did something else; used with a wider range"
    return RecordProblem(line=number, key="quality", what=what, used=True)
