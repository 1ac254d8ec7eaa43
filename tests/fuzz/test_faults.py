"""The rules find what they are for: an attack that could find nothing would pass, too."""

from __future__ import annotations

import pytest

from tests.fuzz.case import DIED, HUNG, Case, Outcome, read_case
from tests.fuzz.faults import faults
from tests.fuzz.program import run_program

ASKED = Case(arguments=("estimate",))


@pytest.mark.parametrize(
    ("code", "out", "err", "files", "wrong"),
    [
        (1, b"", "error: mpplan 0.1.0 failed unexpectedly: KeyError: 'x'\n", {}, "exit 1 in nowhere: error: mpplan"),
        (
            0,
            b"ok",
            'Traceback (most recent call last):\n  File "a/b.py", line 1, in f\nE: x\n',
            {},
            "a traceback: E: x",
        ),
        (2, b"", "no\n", {}, "exit 2 without an error in words"),
        (0, b"\x1b[31mred", "", {}, "a control character on stdout"),
        (2, b"", "error: `\x07` is not a number\n", {}, "a control character on stderr"),
        (0, b'{"mfu": NaN}', "", {}, "stdout is no JSON: NaN in a document"),
        (0, b'{"cost": {"low": 2.0, "mid": 1.0, "high": 3.0}}', "", {}, ".cost: low 2.0, mid 1.0, high 3.0"),
        (0, b'{"cost": 1e999}', "", {}, ".cost: inf"),
        (0, b"it costs nan USD\n", "", {}, "`nan` on stdout"),
        (0, b"group  bias\nmine   nan\n", "", {}, "`nan` on stdout"),
        (0, b"", "", {"here/.mpplan-x1": b""}, "a temporary file is left"),
        (0, b"", "", {"here/plan.html": b"<html>"}, "here/plan.html is cut short"),
        (2, b"", "error: x\n", {"here/plan.html": b"<html></html>"}, "exit 2 and here/plan.html was written"),
        (HUNG, b"", "", {}, "it did not end within its time"),
        (DIED, b"", "", {}, "the process died"),
    ],
)
def test_what_an_outcome_may_not_show_is_named(code, out, err, files, wrong):
    [sentence] = faults(ASKED, Outcome(code=code, out=out, err=err, files=files))

    assert sentence.startswith(wrong)


def test_a_group_of_runs_may_have_any_name():
    table = b"group  runs  bias\ninf       2  6.0%\n"

    assert faults(ASKED, Outcome(code=0, out=table, err="")) == []


def test_an_ordered_range_and_an_error_in_words_are_right():
    answer = b'{"cost": {"low": 1.0, "mid": 1.0, "high": 3.0}, "why": "inf"}'

    assert faults(ASKED, Outcome(code=0, out=answer, err="warning: x\n")) == []
    assert faults(ASKED, Outcome(code=2, out=b"", err="error: x\nhint: y\n")) == []
    assert faults(ASKED, Outcome(code=0, out=b"`nan` is no number", err="", files={"here/x.html": b"{}\n"})) == []


def test_a_case_is_kept_and_read_as_it_was(tmp_path, monkeypatch):
    monkeypatch.setattr("tests.fuzz.case.CORPUS", tmp_path)
    case = Case(
        arguments=("check", "a\udcff\x1b", "²"), files={"x/y": b"\xff\x00", "z": b"plain"}, stdin=b"base64:",
        variables={"COLUMNS": "-1"},
    )  # fmt: skip

    kept = read_case(case.keep("arguments", ["exit 1"]))

    assert (kept.arguments, kept.files, kept.stdin, kept.variables) == (
        case.arguments, case.files, case.stdin, case.variables
    )  # fmt: skip
    assert kept.expect == "exit 1"


def test_a_case_sees_its_files_and_its_variables_and_nothing_of_the_tester(monkeypatch, tmp_path):
    (tmp_path / "mpplan.toml").write_text("[gpus]\nx = 1\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path)

    assert run_program(Case(arguments=("gpus", "h100-sxm5-80gb"))).code == 0
    mine = run_program(Case(arguments=("gpus",), files={"mpplan.toml": b"[gpus]\ny = 1\n"}))
    assert (mine.code, mine.err.splitlines()[0]) == (3, "error: mpplan.toml:2: gpus.y: not a flag of `mpplan gpus`")
    assert mine.files == {}
