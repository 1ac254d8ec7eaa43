"""Mutation testing of the equations: `make mutants` reports line changes that no test of the equations detects.

mutmut (https://mutmut.readthedocs.io) writes every mutant of `planner/performance/` and runs the tests that reach it.
All mutants take hours; this runs a sample, the same for the same seed, and prints the survivors with their change.
`docs/mutants.md` has the last run and the reasons why its survivors were not detected.
"""

from __future__ import annotations

import random
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
COUNT, SEED = 300, 14
ANY = "planner.performance.run.x_goodput_ratio__mutmut_1"
"""Any mutant: running one makes mutmut write all of them."""


def _mutmut(program: str, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([program, *words], cwd=ROOT, capture_output=True, text=True, check=False)


def outcomes(program: str) -> dict[str, str]:
    """Return the outcome of each mutant so far, by name: `killed`, `survived`, `not checked` …"""
    lines = _mutmut(program, "results", "--all", "true").stdout.splitlines()
    return dict(line.strip().rsplit(": ", 1) for line in lines if ": " in line)


def main(count: int = COUNT, seed: int = SEED) -> int:
    """Run a sample and print the outcomes; return 1 if a mutant survived, 2 if none could be run."""
    program = shutil.which("mutmut") or shutil.which("mutmut", path=str(Path(sys.executable).parent))
    if program is None:
        sys.stderr.write("error: mutmut is not installed\nhint: pip install mutmut\n")
        return 2
    shutil.rmtree(ROOT / "mutants", ignore_errors=True)
    first = _mutmut(program, "run", "--max-children", "1", ANY)
    names = sorted(outcomes(program))
    if not names:
        last = (first.stderr.strip() or first.stdout.strip() or "it printed nothing").splitlines()[-1]
        sys.stderr.write(f"error: mutmut made no mutants: {last}\nhint: `mutmut run` in a clean clone says more\n")
        return 2
    sample = random.Random(seed).sample(names, min(count, len(names)))
    _mutmut(program, "run", *sample)
    came = {name: outcome for name, outcome in outcomes(program).items() if name in set(sample)}
    survivors = sorted(name for name, outcome in came.items() if outcome == "survived")
    killed = sum(outcome == "killed" for outcome in came.values())
    unclear = len(sample) - killed - len(survivors)  # no verdict: a time limit, or no test that reaches it
    more = f", {unclear} without a verdict" if unclear else ""
    counts = f"{killed} killed, {len(survivors)} survived{more}"
    sys.stdout.write(f"{len(names)} mutants, {len(sample)} of them run: {counts}\n")
    for name in survivors:
        shown = _mutmut(program, "show", name).stdout.splitlines()
        changed = [line for line in shown if line[:1] in ("+", "-") and line[1:2] != line[:1]]
        sys.stdout.write("\n".join((name, *changed, "")))
    return 1 if survivors else 0


if __name__ == "__main__":
    sys.exit(main(*(int(word) for word in sys.argv[1:3])))
