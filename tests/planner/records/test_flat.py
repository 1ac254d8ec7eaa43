"""The flat keys of a line: which there are, and that a measurement comes back from its line as it was."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.records.flat import FlatKey, columns, flatten, nest
from planner.records.jsonl import parse_line, to_line
from planner.records.measurement import KINDS, QUALITIES, SCHEMA, STATUSES, Measurement
from tests.planner.recorded import a_measurement

LINES = (Path(__file__).parent / "probe_lines.jsonl").read_text(encoding="utf-8").splitlines()
"""Lines of a real record of a CPU, written by `mpplan probe` 0.1.0 before its fields were grouped; device, run and
commit are replaced."""

KEYS = (Path(__file__).parent / "keys.txt").read_text(encoding="ascii").split()
"""Every key of `mpplan.probe/3`. A key that goes or changes its name makes old records unreadable."""

CHOICES = {"schema": (SCHEMA,), "status": STATUSES, "kind": KINDS, "quality": QUALITIES}
TEXT = st.text(min_size=1, max_size=12)
NUMBER = st.floats(min_value=1e-12, max_value=1e18)
BY_TYPE: dict[object, st.SearchStrategy[Any]] = {
    str: TEXT,
    int: st.integers(min_value=1, max_value=2**53),
    float: NUMBER,
    bool: st.booleans(),
    tuple[str, ...]: st.lists(TEXT, min_size=1, max_size=3).map(tuple),
    tuple[float, ...]: st.lists(NUMBER, min_size=1, max_size=3).map(tuple),
    dict[str, str]: st.dictionaries(TEXT, TEXT, min_size=1, max_size=3),
}


def value_of(column: FlatKey) -> st.SearchStrategy[Any]:
    if column.key == "timestamp_utc":
        return st.datetimes().map(lambda time: time.isoformat())
    return st.sampled_from(CHOICES[column.key]) if column.key in CHOICES else BY_TYPE[column.type]


NEEDED = {column.key: value_of(column) for column in columns() if column.required} | {
    "time_median_s": st.floats(min_value=1e-9, max_value=1e18)  # a nanosecond
}
ORDERED = ("time_ci_low_s", "time_ci_high_s")
"""The ends of an interval: the first is at most the second, and neither is far above the median."""


def ordered(values: dict[str, Any]) -> dict[str, Any]:
    given_ends = [key for key in ORDERED if key in values]
    near = sorted(min(values[key], 100.0 * values["time_median_s"]) for key in given_ends)
    return values | dict(zip(given_ends, near, strict=True))


LINE = st.fixed_dictionaries(
    NEEDED, optional={column.key: value_of(column) for column in columns() if column.key not in NEEDED}
).map(ordered)


def test_the_keys_are_those_that_are_listed_each_once() -> None:
    assert sorted(column.key for column in columns()) == sorted(KEYS)
    assert len(set(KEYS)) == len(KEYS)


@given(values=LINE)
def test_any_measurement_comes_back_from_its_line_as_it_was(values: dict[str, Any]) -> None:
    measurement = nest(values)

    assert parse_line(to_line(measurement)) == measurement
    assert flatten(measurement) == {"schema": SCHEMA} | values


@pytest.mark.parametrize("line", LINES, ids=lambda line: json.loads(line)["probe_id"])
def test_a_line_of_an_earlier_program_reads_and_writes_back_with_the_same_keys_and_values(line: str) -> None:
    measurement = parse_line(line)

    assert json.loads(to_line(measurement)) == json.loads(line) | {"schema": SCHEMA}  # type: ignore[arg-type]


def test_a_group_is_reached_by_its_name_and_its_field() -> None:
    run = a_measurement(memory_source="cuda_allocator", alloc_retries=2, predicted_from=["a"], device_hash="0a1b")

    assert (run.memory.source, run.memory.alloc_retries) == ("cuda_allocator", 2)
    assert (run.setup.recipe, run.predicted.probe_ids, run.device.uuid_hash) == ("bf16-autocast", ["a"], "0a1b")


def test_a_key_that_no_line_has_is_an_error() -> None:
    with pytest.raises(KeyError, match="time_mean_s"):
        a_measurement(time_mean_s=1.0)


def test_a_collective_of_the_first_format_is_read_under_the_present_names() -> None:
    """Which named the collectives of other tools as nccl-tests does."""
    current = json.loads(to_line(a_measurement(kind="collective", probe_id="alltoall/2x8/1024")))
    line = {key: value for key, value in current.items() if key != "role"} | {
        "schema": "mpplan.probe/1", "role": "alltoall", "ranks": 16, "nodes": 2, "message_bytes": 1024,
    }  # fmt: skip

    measurement = parse_line(json.dumps(line))

    assert isinstance(measurement, Measurement)
    comm = measurement.communication
    assert (comm.op, comm.world, comm.nodes, comm.bytes) == ("all_to_all", 16, 2, 1024.0)
    assert (measurement.schema, measurement.setup.role) == (SCHEMA, None)
