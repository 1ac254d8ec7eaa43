"""Reading and writing of record files: JSON Lines with one `Measurement` per line, optionally compressed as `.gz`.

Reading never fails on content. Unusable lines are reported with their number, and the rest is used.
"""

from __future__ import annotations

import gzip
import json
import math
from collections import Counter
from collections.abc import Callable, Iterable
from datetime import datetime
from functools import cache
from pathlib import Path

from planner.lazy import dataclass
from planner.records.flat import EARLIER, FlatKey, brought_up, columns, columns_by_key, flatten, nest
from planner.records.lines import numbered_lines
from planner.records.measurement import KINDS, QUALITIES, SCHEMA, STATUSES, Measurement
from planner.records.problem import Problems, RecordProblem

_CHOICES = {"status": STATUSES, "kind": KINDS, "quality": QUALITIES}
_MAY_BE_NEGATIVE = ("_c", "loss_trace", "monotonic_s", "difference_low", "difference_mid", "difference_high")
_TIMELESS = ("support", "idle", "meter", "numerics")
"""Kinds whose points have no time."""
_POSITIVE = ("time_median_s", "tokens", "layers", "flop_model", "bytes_min")
_SHORTEST_S = 1e-9
"""Shortest time of an iteration: none takes less than a nanosecond."""
_WIDEST = 100.0
"""Largest ratio of the upper end of a median's confidence interval to the median. A wider interval carries no
information, and a rate drawn from an interval of a thousand times the median overflows."""
_LARGEST, _LARGEST_WHOLE = 1e30, 2**53
"""Largest number and whole number; up to these, every product and quotient in a plan stays finite."""
_OF_A_NEWER = ", which a newer mpplan writes"
_SHOWN_CHARACTERS = 60
"""Characters of an invalid value that a message shows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasurementFile:
    """The usable lines of a record file and the problems of the others."""

    measurements: tuple[Measurement, ...]
    problems: tuple[RecordProblem, ...]
    """Problems in the order of lines; only the first ones if there are very many."""
    problems_left_out: int = 0
    """Number of further unused lines whose problem is not in `problems`."""

    def latest(self) -> tuple[Measurement, ...]:
        """Last line of each probe id, so that a point measured again replaces the earlier one."""
        newest: dict[str, Measurement] = {}
        for point in self.measurements:
            newest.pop(point.probe_id, None)
            newest[point.probe_id] = point
        return tuple(newest.values())

    @property
    def damage(self) -> tuple[RecordProblem, ...]:
        """Problems whose lines are not used."""
        return tuple(problem for problem in self.problems if not problem.used)

    @property
    def unused_lines(self) -> int:
        """Number of lines that could not be used."""
        return sum(problem.line > 0 for problem in self.damage) + self.problems_left_out

    @property
    def is_newer(self) -> bool:
        """Whether lines have a later version of the schema, so that mpplan must be updated to read them."""
        return any(problem.what.endswith(_OF_A_NEWER) for problem in self.damage)


def to_line(measurement: Measurement) -> str:
    """Format a measurement as one line of JSON without a line break; None and empty collections are left out.

    Raises:
        ValueError: a figure is NaN or infinite.
    """
    return json.dumps(flatten(measurement), separators=(",", ":"), allow_nan=False, ensure_ascii=False)


def record_bytes(measurements: Iterable[Measurement], name: str) -> bytes:
    """Content of a record's file, compressed if the name ends in `.gz`."""
    text = "".join(f"{to_line(point)}\n" for point in measurements).encode()
    return gzip.compress(text, mtime=0) if name.endswith(".gz") else text


def read_measurements(path: Path) -> MeasurementFile:
    """Read a record file. Unusable lines are reported; the usable ones are returned in order.

    A file holds one run on one device. Lines of another run or device than most of the file are not used.

    Raises:
        UsageError: the file is missing or cannot be opened.
    """
    parsed: list[tuple[int, Measurement]] = []
    problems = Problems()
    for number, text in numbered_lines(path, problems):
        outcome = parse_line(text, number)
        if isinstance(outcome, RecordProblem):
            problems.take(outcome)
        else:
            parsed.append((number, outcome))
    kept = _keep_one_run(_keep_one_device(_keep_one_origin(parsed, problems), problems), problems)
    for number, point in kept:
        if point.sampling.quality == "contended":
            problems.add(number, _contended(point), "quality", used=True)
    if not kept:
        problems.add(0, "no usable line")
    return MeasurementFile(
        measurements=tuple(point for _, point in kept),
        problems=tuple(sorted(problems.kept, key=lambda problem: problem.line)),
        problems_left_out=problems.left_out,
    )


def parse_line(text: str, number: int = 1) -> Measurement | RecordProblem:
    """Parse one line into a measurement, or return the problem with it."""
    try:
        document = json.loads(text)
    except json.JSONDecodeError:
        cut = "" if text.endswith("\n") else ", the line is cut off"
        return RecordProblem(line=number, key=None, what=f"expected one JSON object{cut}")
    except (ValueError, RecursionError):  # a number of thousands of digits, or brackets nested too deeply
        return RecordProblem(line=number, key=None, what="expected one JSON object of ordinary size")
    if not isinstance(document, dict):
        return RecordProblem(line=number, key=None, what=f"expected a JSON object, found {type(document).__name__}")
    schema = document.get("schema")
    if schema in EARLIER:
        document = brought_up(document) | {"schema": SCHEMA}
    elif schema != SCHEMA:
        newer = _OF_A_NEWER if _is_newer(schema) else ""
        return RecordProblem(line=number, key="schema", what=f"expected `{SCHEMA}`, found `{_shown(schema)}`{newer}")
    values: dict[str, object] = {}
    known = columns_by_key()
    for key, value in document.items():
        if value is None or key not in known:
            continue
        try:
            values[key] = _value(known[key], value)
        except ValueError as error:
            return RecordProblem(line=number, key=key, what=str(error))
    missing = _missing(values)
    return nest(values) if missing is None else RecordProblem(line=number, key=missing[0], what=missing[1])


def _is_newer(schema: object) -> bool:
    """Whether a schema is a later version of the schema of records."""
    name, _, version = SCHEMA.rpartition("/")
    family, _, number = str(schema).rpartition("/")
    return family == name and number.isdecimal() and int(number[:9]) > int(version)


@cache
def _required() -> tuple[str, ...]:
    return tuple(column.key for column in columns() if column.required)


def _missing(values: dict[str, object]) -> tuple[str, str] | None:
    """Key that a line lacks or that contradicts another, with its problem; None if the line is complete."""
    for key in _required():
        if key not in values:
            return key, "expected, but missing"
    if values["status"] == "ok" and values["kind"] not in _TIMELESS and "time_median_s" not in values:
        return "time_median_s", "expected with status `ok`, but missing"
    low, high = values.get("time_ci_low_s"), values.get("time_ci_high_s")
    if isinstance(low, float) and isinstance(high, float) and low > high:
        return "time_ci_low_s", f"expected at most time_ci_high_s, {high:g}, found `{low:g}`"
    median = values.get("time_median_s")
    if isinstance(median, float) and isinstance(high, float) and high > _WIDEST * median:
        return "time_ci_high_s", f"expected at most {_WIDEST:g} times time_median_s, {median:g}, found `{high:g}`"
    return None


def _value(column: FlatKey, value: object) -> object:
    """Convert a value to the column's type.

    Raises:
        ValueError: the value is invalid; the message says what was expected and what was found.
    """
    read = _READERS.get(column.type)
    if read is not None:
        return read(column, value)
    if not isinstance(value, list):
        raise ValueError(f"expected a list, found `{_shown(value)}`")
    if column.type == tuple[float, ...]:
        return tuple(_number(column, item) for item in value)
    return tuple(_plain(str(item)) for item in value)


def _switch(_column: FlatKey, value: object) -> bool:
    if not isinstance(value, bool):
        raise ValueError(f"expected true or false, found `{_shown(value)}`")
    return value


def _text(column: FlatKey, value: object) -> str:
    if not isinstance(value, str):
        raise ValueError(f"expected text, found `{_shown(value)}`")
    choices = _CHOICES.get(column.key)
    if choices is not None and value not in choices:
        raise ValueError(f"expected one of {', '.join(choices)}, found `{_shown(value)}`")
    if column.key == "timestamp_utc":
        try:
            datetime.fromisoformat(value)
        except ValueError:
            raise ValueError(f"expected an ISO 8601 time, found `{_shown(value)}`") from None
    return _plain(value)


def _plain(text: str) -> str:
    """Return the text if UTF-8 can encode it; JSON can hold half of a surrogate pair, which UTF-8 cannot."""
    if not text.isascii() and not text.isprintable():
        try:
            text.encode()
        except UnicodeEncodeError:
            raise ValueError("expected text, found half of a surrogate pair") from None
    return text


def _environment(_column: FlatKey, value: object) -> dict[str, str]:
    if not isinstance(value, dict):
        raise ValueError(f"expected an object, found `{_shown(value)}`")
    return {_plain(str(name)): _plain(str(text)) for name, text in value.items()}


def _number(column: FlatKey, value: object) -> float:
    return float(_amount(column, value, _LARGEST))


def _whole(column: FlatKey, value: object) -> int:
    amount = _amount(column, value, _LARGEST_WHOLE)
    if amount != int(amount):
        raise ValueError(f"expected a whole number, found `{_shown(value)}`")
    return int(amount)


def _amount(column: FlatKey, value: object, largest: float) -> float | int:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError(f"expected a number, found `{_shown(value)}`")
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError(f"expected a finite number, found `{value}`")
    if value < 0 and not column.key.endswith(_MAY_BE_NEGATIVE):
        raise ValueError(f"expected a number that is not negative, found `{_shown(value)}`")
    if value == 0 and column.key in _POSITIVE:
        raise ValueError("expected a number greater than 0, found `0`")
    if column.key == "time_median_s" and value < _SHORTEST_S:
        raise ValueError(f"expected at least {_SHORTEST_S:g} s, found `{_shown(value)}`")
    if abs(value) > largest or 0 < abs(value) < 1 / _LARGEST:
        raise ValueError(f"expected a number between {1 / _LARGEST:g} and {largest:g}, found `{_shown(value)}`")
    return value


_READERS: dict[object, Callable[[FlatKey, object], object]] = {
    float: _number, int: _whole, bool: _switch, str: _text, dict[str, str]: _environment,
}  # fmt: skip
"""Reader for each type of a column; all other types are lists."""


def _shown(value: object) -> str:
    """Format an invalid value for a message, cut if it is long."""
    try:
        text = value if isinstance(value, str) else str(value)
    except (ValueError, RecursionError):
        return "a number of thousands of digits" if isinstance(value, int) else type(value).__name__
    shown = text if len(text) <= _SHOWN_CHARACTERS else text[:_SHOWN_CHARACTERS] + "…"
    return shown.encode(errors="replace").decode()


def _device(point: Measurement) -> tuple[str, str | None]:
    return point.device.name, point.device.uuid_hash


Numbered = list[tuple[int, Measurement]]


def _keep_one_origin(parsed: Numbered, problems: Problems) -> Numbered:
    """Keep either the measured or the imported lines, whichever are more: a file never holds both."""
    imported = [point.imported.tool is not None for _, point in parsed]
    mostly_imported = 2 * sum(imported) > len(parsed)
    kept = []
    for (number, point), is_imported in zip(parsed, imported, strict=True):
        if is_imported is mostly_imported:
            kept.append((number, point))
        else:
            what = "imported from another tool among measured lines" if is_imported else "measured among imported lines"
            problems.add(number, what, "imported_tool")
    return kept


def _keep_one_device(parsed: Numbered, problems: Problems) -> Numbered:
    if not parsed:
        return parsed
    main_device = Counter(_device(point) for _, point in parsed).most_common(1)[0][0]
    for number, point in parsed:
        if _device(point) != main_device:
            what = f"measured on another device, `{point.device.name}`, than most of the file, `{main_device[0]}`"
            problems.add(number, what, "device_name")
    return [(number, point) for number, point in parsed if _device(point) == main_device]


def _keep_one_run(parsed: Numbered, problems: Problems) -> Numbered:
    if not parsed:
        return parsed
    main_run_id = Counter(point.run_id for _, point in parsed).most_common(1)[0][0]
    for number, point in parsed:
        if point.run_id != main_run_id:
            what = f"two records in one file: run `{point.run_id[:8]}` among the lines of run `{main_run_id[:8]}`"
            problems.add(number, what, "run_id")
    return [(number, point) for number, point in parsed if point.run_id == main_run_id]


def _contended(point: Measurement) -> str:
    share = "an unknown part" if point.sampling.other_load_ratio is None else f"{point.sampling.other_load_ratio:.0%}"
    return f"`{point.probe_id}` was measured while {share} of the machine did something else; used with a wider range"
