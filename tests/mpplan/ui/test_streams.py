"""Standard streams that the caller closed, and those that nobody takes any more."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from mpplan.ui.streams import open_streams, silence

ROOT = Path(__file__).parents[3]


def by_shell(command: str) -> subprocess.CompletedProcess[str]:
    """Run a line of the shell in which `mpplan` is the program."""
    script = f'mpplan() {{ "{sys.executable}" -m mpplan "$@"; }}; {command}'
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.run(["sh", "-c", script], capture_output=True, text=True, check=False, env=environment)


@pytest.mark.parametrize("command", ["mpplan gpus", "mpplan --help", "mpplan --version", "mpplan prices list"])
def test_an_answer_for_a_closed_stdout_is_an_output_that_cannot_be_written(home, command):
    done = by_shell(f"{command} >&-")

    assert done.returncode == 2
    assert done.stderr.splitlines() == [
        "error: cannot write the output: Bad file descriptor",
        "hint: check the disk, or the program that reads the output",
    ]


@pytest.mark.parametrize("closed", [">&-", "<&-", "2>&-", "2>/dev/full", "<&- >&- 2>&-"])
@pytest.mark.parametrize(
    ("command", "code"), [("mpplan calibrate --template -o runs.csv", 0), ("mpplan bogus", 2), ("mpplan", 2)]
)
def test_a_closed_stream_changes_nothing_where_there_is_no_answer_for_it(home, closed, command, code):
    done = by_shell(f"{command} {closed}")

    assert done.returncode == code
    assert done.stdout == ""
    assert "Traceback" not in done.stderr


def test_what_is_said_is_lost_and_the_answer_is_not_where_stderr_is_closed(home):
    assert by_shell("mpplan gpus --json 2>&-").stdout.startswith("{")


def test_a_closed_stdin_is_empty(home):
    done = by_shell("mpplan report - <&-")

    assert done.returncode == 3
    assert done.stderr.startswith("error: stdin:1: ")


def test_a_reader_of_both_streams_that_stops_early_is_not_an_error(home):
    ended = "until [ -s code ]; do sleep 0.1; done"  # some shells wait only for the last command of a pipe
    done = by_shell(f"{{ mpplan bogus; echo $? >code; }} 2>&1 | true; {ended}; cat code")

    assert done.stdout == "2\n"
    assert done.stderr == ""


@pytest.mark.parametrize("command", ["mpplan gpus --json", "mpplan calibrate --template --output -"])
def test_an_answer_that_is_cut_short_is_an_error_without_a_buffer_too(home, command):
    whole = by_shell(command).stdout
    done = by_shell(f"export PYTHONUNBUFFERED=1; ulimit -f 1; {command} >answer")  # blocks of 512 or 1024 bytes

    assert done.returncode == 2
    assert done.stderr.splitlines()[-2] == "error: cannot write the output: File too large"
    assert whole.startswith((home / "answer").read_text(encoding="utf-8"))
    assert by_shell(f"export PYTHONUNBUFFERED=1; {command}").stdout == whole


def test_streams_that_are_open_stay():
    before = sys.stdin, sys.stdout, sys.stderr
    open_streams()

    assert (sys.stdin, sys.stdout, sys.stderr) == before


def test_a_silenced_stream_loses_what_is_written(tmp_path):
    path = tmp_path / "out"
    with path.open("w", encoding="utf-8") as stream:
        silence(stream)
        stream.write("lost")

    assert path.read_text(encoding="utf-8") == ""
