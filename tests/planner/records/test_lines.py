"""The lines of a record, whatever the file really is."""

from __future__ import annotations

import gzip
import os
import threading
from pathlib import Path

import pytest

from planner.errors import UsageError
from planner.records.lines import MAX_LINE_BYTES, numbered_lines
from planner.records.problem import KEPT, Problems


def read(path: Path) -> tuple[list[tuple[int, str]], list[str]]:
    problems = Problems()
    lines = list(numbered_lines(path, problems))
    return lines, [problem.said_of("r") for problem in problems.kept]


@pytest.mark.parametrize("name", ["r.jsonl", "r.jsonl.gz"])
def test_a_line_that_is_too_long_costs_only_itself(tmp_path: Path, name: str) -> None:
    content = b"a\n" + b"x" * (3 * MAX_LINE_BYTES) + b"\nb\n"
    (tmp_path / name).write_bytes(gzip.compress(content) if name.endswith("gz") else content)

    assert read(tmp_path / name) == ([(1, "a\n"), (3, "b\n")], ["r:2: expected a line of at most 1 MiB"])


def test_the_longest_line_is_read(tmp_path: Path) -> None:
    (tmp_path / "r.jsonl").write_bytes(b"x" * (MAX_LINE_BYTES - 1) + b"\n")

    ((number, text),), problems = read(tmp_path / "r.jsonl")

    assert (number, len(text), problems) == (1, MAX_LINE_BYTES, [])


@pytest.mark.parametrize(("name", "why"), [("/dev/zero", "it is a device"), ("/", "it is a directory")])
def test_what_is_no_file_is_not_read(name: str, why: str) -> None:
    with pytest.raises(UsageError, match=why):
        read(Path(name))


def test_a_name_that_no_file_can_have_is_a_usage_error() -> None:
    with pytest.raises(UsageError, match="cannot read"):
        read(Path("a\0b"))


def test_a_pipe_is_read_to_its_end_and_one_that_nobody_writes_is_empty(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    assert read(pipe) == ([], [])

    handle = os.open(pipe, os.O_RDWR)  # a writer, as `<(zcat record.gz)` has one
    writer = threading.Timer(0.2, lambda: (os.write(handle, b"a\nb\n"), os.close(handle)))
    writer.start()
    assert read(pipe) == ([(1, "a\n"), (2, "b\n")], [])
    writer.join()


def test_of_very_many_problems_the_first_are_kept_and_all_are_counted() -> None:
    problems = Problems()
    for line in range(1, 3 * KEPT + 1):
        problems.add(line, "bad")
    problems.add(7, "doubtful", used=True)
    problems.add(0, "no usable line")

    assert len(problems.kept) == KEPT + 2
    assert problems.left_out == 2 * KEPT
