"""The file of finished parts: written through, read back, mended after a kill."""

from __future__ import annotations

from pathlib import Path

import pytest

from planner.errors import UsageError
from planner.records.store import list_records
from probes.numerics.session.parts import PartFile, parts_path, read_parts


def test_what_is_kept_is_not_computed_again_and_outlives_the_process(tmp_path: Path) -> None:
    calls: list[int] = []

    def compute() -> dict[str, object]:
        calls.append(1)
        return {"value": (1, 2)}

    first = PartFile(tmp_path / "r.jsonl").keeper("parity/char-lm")("fp8/0", compute)
    second = PartFile(tmp_path / "r.jsonl").keeper("parity/char-lm")("fp8/0", compute)

    assert first == second == {"value": [1, 2]}  # as it will be read, from the start
    assert len(calls) == 1
    assert list(read_parts(parts_path(tmp_path / "r.jsonl"))) == ["parity/char-lm/fp8/0"]


def test_a_line_that_was_cut_off_is_taken_back_and_a_damaged_one_left_out(tmp_path: Path) -> None:
    file = PartFile(tmp_path / "r.jsonl")
    file.add("a", {"x": 1})
    file.add("a", {"x": 2})
    with file.path.open("a", encoding="utf-8") as stream:
        stream.write('no json\n{"schema": "other/1", "key": "b", "document": {}}\n{"schema": "mpplan.numerics-pa')

    reopened = PartFile(tmp_path / "r.jsonl")
    reopened.add("c", {"x": 3})

    assert reopened.known == {"a": {"x": 2}, "c": {"x": 3}}
    assert read_parts(file.path) == reopened.known


def test_nan_is_never_written(tmp_path: Path) -> None:
    file = PartFile(tmp_path / "r.jsonl")

    with pytest.raises(ValueError, match="not JSON compliant"):
        file.add("a", {"x": float("nan")})
    assert not file.path.exists()


def test_a_folder_in_its_place_is_an_error_with_a_way_out(tmp_path: Path) -> None:
    file = PartFile(tmp_path / "r.jsonl")
    file.path.mkdir()

    with pytest.raises(UsageError, match="cannot write"):
        file.add("a", {})


def test_parts_are_no_record(tmp_path: Path) -> None:
    PartFile(tmp_path / "r.jsonl").add("a", {})

    assert [record for record in list_records(tmp_path) if not record.shipped] == []
    PartFile(tmp_path / "r.jsonl").remove()
    assert list(tmp_path.iterdir()) == []
