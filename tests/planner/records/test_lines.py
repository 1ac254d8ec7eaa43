"""The lines of a record, whatever the file really is."""

from __future__ import annotations

import gzip
import os
from pathlib import Path

import pytest

from planner.errors import InputFileError, UsageError
from planner.records.lines import MAX_LINE_BYTES, numbered_lines
from planner.records.problem import Problems


def read(path: Path) -> tuple[list[tuple[int, str]], list[str]]:
    problems = Problems()
    lines = list(numbered_lines(path, problems))
    return lines, [problem.describe("r") for problem in problems.kept]


@pytest.mark.parametrize("name", ["r.jsonl", "r.jsonl.gz"])
def test_a_line_that_is_too_long_costs_only_itself(tmp_path: Path, name: str) -> None:
    content = b"a\n" + b"x" * (3 * MAX_LINE_BYTES) + b"\nb\n"
    (tmp_path / name).write_bytes(gzip.compress(content) if name.endswith("gz") else content)

    assert read(tmp_path / name) == ([(1, "a\n"), (3, "b\n")], ["r:2: expected a line of at most 1 MiB"])


def test_the_longest_line_is_read(tmp_path: Path) -> None:
    (tmp_path / "r.jsonl").write_bytes(b"x" * (MAX_LINE_BYTES - 1) + b"\n")

    ((number, text),), problems = read(tmp_path / "r.jsonl")

    assert (number, len(text), problems) == (1, MAX_LINE_BYTES, [])


@pytest.mark.parametrize(("name", "why"), [("/dev/zero", "found a device"), ("/", "found a directory")])
def test_what_is_no_file_is_not_read(name: str, why: str) -> None:
    with pytest.raises(InputFileError, match=why):
        read(Path(name))


def test_a_name_that_no_file_can_have_is_a_usage_error() -> None:
    with pytest.raises(UsageError, match="cannot read"):
        read(Path("a\0b"))


def test_a_pipe_that_nobody_writes_is_empty(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")

    assert read(tmp_path / "pipe") == ([], [])
