"""The mutation run: its parts that need no mutmut, and the whole with a stand-in that prints what mutmut 3 prints."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tools import mutants

PRINTED = """    planner.performance.run.x_goodput_ratio__mutmut_1: survived
    planner.performance.run.x_goodput_ratio__mutmut_2: killed
    planner.performance.memory.x__stage__mutmut_7: not checked
"""
CHANGE = """# planner.performance.run.x_goodput_ratio__mutmut_1: survived
--- planner/performance/run.py
+++ planner/performance/run.py
@@ -1,3 +1,3 @@
 def goodput_ratio(hours):
-    return 1.0 / (1.0 + lost)
+    return 1.0 / (1.0 - lost)
"""
STAND_IN = """#!{python}
import pathlib, sys
pathlib.Path(__file__).with_name("asked").open("a").write(" ".join(sys.argv[1:]) + "\\n")
if sys.argv[1] == "results":
    print({printed!r}, end="")
if sys.argv[1] == "show":
    print({change!r}, end="")
"""


@pytest.fixture
def mutmut(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file of what a stand-in for mutmut was asked; the tree is another one, so that no mutants are removed."""
    program = tmp_path / "mutmut"
    program.write_text(STAND_IN.format(python=sys.executable, printed=PRINTED, change=CHANGE), encoding="utf-8")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    monkeypatch.setattr(mutants, "ROOT", tmp_path)
    return tmp_path / "asked"


def test_what_came_of_each_mutant_is_read_by_its_name(mutmut):
    assert mutants.outcomes(str(mutmut.with_name("mutmut"))) == {
        "planner.performance.run.x_goodput_ratio__mutmut_1": "survived",
        "planner.performance.run.x_goodput_ratio__mutmut_2": "killed",
        "planner.performance.memory.x__stage__mutmut_7": "not checked",
    }


def test_a_sample_is_run_and_its_survivors_are_shown_with_their_change(mutmut, capsys):
    assert mutants.main(3, 1) == 1

    told = capsys.readouterr().out.splitlines()
    assert told == [
        "3 mutants, 3 of them run: 1 killed, 1 survived, 1 without a verdict",
        "planner.performance.run.x_goodput_ratio__mutmut_1",
        "-    return 1.0 / (1.0 + lost)",
        "+    return 1.0 / (1.0 - lost)",
    ]
    assert mutmut.read_text(encoding="utf-8").splitlines()[2].split()[0] == "run"


def test_the_same_seed_runs_the_same_sample(mutmut):
    for seed in (5, 5):
        mutants.main(1, seed)

    runs = [line for line in mutmut.read_text(encoding="utf-8").splitlines() if line.startswith("run ")]
    assert runs[1] == runs[3]


def test_a_tree_that_makes_no_mutants_is_no_success(mutmut, monkeypatch, capsys):
    monkeypatch.setattr(mutants, "outcomes", lambda program: {})

    assert mutants.main(3, 1) == 2
    assert "no mutants" in capsys.readouterr().err


def test_without_mutmut_it_says_how_to_get_it(monkeypatch, capsys):
    monkeypatch.setattr("tools.mutants.shutil.which", lambda *_, **__: None)

    assert mutants.main(1, 1) == 2
    assert "pip install mutmut" in capsys.readouterr().err
