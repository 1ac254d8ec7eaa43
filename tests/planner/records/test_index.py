"""The index of the store: it saves reading, is never believed against a file, and may be broken or impossible."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from planner.records import index, store
from planner.records.home import records_dir
from planner.records.index import FILE_NAME
from tests.planner.recorded import H200, a_canary, a_measurement, write_record


@pytest.fixture(autouse=True)
def home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    monkeypatch.setattr(store, "SHIPPED", tmp_path / "shipped")


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names of the records that were read, which go on to be read."""
    names: list[str] = []
    read = store.open_record

    def counted(path: Path, **values: Any) -> store.StoredRecord:
        names.append(path.name)
        return read(path, **values)

    monkeypatch.setattr(store, "open_record", counted)
    return names


def a_record(name: str, *, hours_old: int = 1, **changes: object) -> Path:
    path = write_record(records_dir() / name, a_canary(**H200), a_measurement(**(H200 | changes)))
    return aged(path, hours_old)


def aged(path: Path, hours_old: int) -> Path:
    """The file with an earlier time. What the system notes as the time of the change stays that of the test."""
    stamp = 1_790_000_000 - 3600 * hours_old
    os.utime(path, (stamp, stamp))
    return path


@pytest.fixture(autouse=True)
def settled_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Files of a test are seconds old at most."""
    monkeypatch.setattr("planner.records.index.SETTLED_NS", -60_000_000_000)


def test_a_record_that_has_not_changed_is_read_once(opened: list[str]) -> None:
    a_record("one.jsonl")
    a_record("two.jsonl")

    first = store.list_records()
    second = store.list_records()

    assert first == second
    assert sorted(opened) == ["one.jsonl", "two.jsonl"]


def test_a_record_that_has_changed_is_read_again_and_only_that_one(opened: list[str]) -> None:
    a_record("one.jsonl")
    second_file = a_record("two.jsonl")
    store.list_records()
    opened.clear()

    second_file.write_text(
        second_file.read_text(encoding="utf-8").replace("NVIDIA H200", "NVIDIA H2OO"), encoding="utf-8"
    )
    aged(second_file, hours_old=1)  # the same size and time of writing as before
    names = {record.name: record.facts.device_name for record in store.list_records()}

    assert opened == ["two.jsonl"]
    assert names == {"one": "NVIDIA H200", "two": "NVIDIA H2OO"}


def test_a_record_that_is_gone_leaves_the_index(opened: list[str]) -> None:
    a_record("one.jsonl")
    second_file = a_record("two.jsonl")
    store.list_records()
    second_file.unlink()

    assert [record.name for record in store.list_records()] == ["one"]
    assert list(json.loads((records_dir() / FILE_NAME).read_text())["records"]) == ["one.jsonl"]


def test_a_file_written_this_moment_is_not_remembered(monkeypatch: pytest.MonkeyPatch, opened: list[str]) -> None:
    monkeypatch.setattr("planner.records.index.SETTLED_NS", 3600 * 10**9)  # longer than any machine takes from here on
    a_record("one.jsonl")

    store.list_records()
    store.list_records()

    assert opened == ["one.jsonl", "one.jsonl"]


@pytest.mark.parametrize(
    "damage",
    [
        b"", b"{", b"null", b"[]", b"\xff\xfe", b"[" * 100_000, b'{"schema": "mpplan.index/1"}',
        b'{"schema": "mpplan.index/1", "rules": 0, "records": {}}',
    ],
)  # fmt: skip
def test_a_damaged_index_is_as_good_as_none(damage: bytes) -> None:
    a_record("one.jsonl")
    expected = store.list_records()
    (records_dir() / FILE_NAME).write_bytes(damage)

    assert store.list_records() == expected
    assert store.list_records() == expected


@pytest.mark.parametrize("field", ["date", "device_name", "precisions", "points", "trustworthy", "memory_total_bytes"])
@pytest.mark.parametrize("value", [{}, [1], "x" * 3, None])
def test_an_entry_of_other_types_never_stops_a_listing(field: str, value: object) -> None:
    a_record("one.jsonl")
    store.list_records()
    index = records_dir() / FILE_NAME
    document = json.loads(index.read_text())
    document["records"]["one.jsonl"]["summary"][field] = value
    index.write_text(json.dumps(document))

    assert [record.name for record in store.list_records()] == ["one"]


def test_a_store_in_which_no_index_can_be_written_is_read_each_time(opened: list[str]) -> None:
    a_record("one.jsonl")
    (records_dir() / FILE_NAME).mkdir()

    assert [record.name for record in store.list_records()] == ["one"]
    assert [record.name for record in store.list_records()] == ["one"]
    assert opened == ["one.jsonl", "one.jsonl"]
    assert sorted(path.name for path in records_dir().iterdir()) == [FILE_NAME, "one.jsonl"]


def test_a_folder_that_the_user_names_is_left_as_it_is(tmp_path: Path) -> None:
    write_record(tmp_path / "mine" / "one.jsonl", a_measurement())

    store.list_records(tmp_path / "mine")

    assert [path.name for path in (tmp_path / "mine").iterdir()] == ["one.jsonl"]


def test_the_index_holds_what_a_choice_needs() -> None:
    a_record("one.jsonl", torch_version="2.9.0", driver_version="580.1")

    store.list_records()

    entry = json.loads((records_dir() / FILE_NAME).read_text())["records"]["one.jsonl"]
    assert entry["file"]["size_bytes"] == (records_dir() / "one.jsonl").stat().st_size
    facts = {name: entry["summary"][name] for name in ("device_name", "precisions", "torch_version", "trustworthy")}
    assert facts == {
        "device_name": "NVIDIA H200", "precisions": ["bf16"], "torch_version": "2.9.0", "trustworthy": True,
    }  # fmt: skip


@pytest.mark.parametrize("rule", ["gpus.csv", "check.py", "figures.py", "work.py"])
def test_records_are_judged_anew_once_what_judges_them_has_changed(
    opened: list[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path, rule: str
) -> None:
    a_record("one.jsonl")
    store.list_records()
    opened.clear()
    assert (store.list_records(), opened) == (store.list_records(), [])
    shipped = next(path for path in index.RULES if path.name == rule)
    (tmp_path / rule).write_bytes(shipped.read_bytes() + b"\n")
    changed = tuple(tmp_path / rule if path == shipped else path for path in index.RULES)
    monkeypatch.setattr(index, "RULES", changed)
    index._rules.cache_clear()

    store.list_records()

    index._rules.cache_clear()
    assert opened == ["one.jsonl"]
