"""What the probe of this CPU takes and how well it predicts: `python -m benchmarks.probe_cpu [runs]`, about 25 minutes.

Each run is a fresh `mpplan probe --device cpu`, then `mpplan probe --verify --resume` on the record of it; first all
runs on the machine as it is, then all with another process that keeps one core busy. Run it on an otherwise idle
machine, with the interpreter that has mpplan[probe]. It prints a Markdown table, line by line.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

BURN = "while True: sum(range(10000))"
HEAD = "| machine | suite | of it contended | `check` trusts it | verify | time error | of quiet cases | memory error |"


@contextmanager
def one_core_busy(busy: bool) -> Iterator[None]:
    """Another process that never rests while the block runs, where wanted."""
    burner = subprocess.Popen([sys.executable, "-c", BURN]) if busy else None
    try:
        yield
    finally:
        if burner:
            burner.kill()
            burner.wait()


def answer(record: Path, *words: str) -> tuple[float, dict[str, Any]]:
    """Seconds and document of one command, in a fresh process."""
    start = time.perf_counter()
    command = [sys.executable, "-m", "mpplan", *words, "--json"]
    apart = {**os.environ, "XDG_DATA_HOME": str(record.parent)}  # no records of the developer's own
    done = subprocess.run(command, capture_output=True, text=True, env=apart)
    if done.returncode not in (0, 6):
        raise SystemExit(f"{' '.join(words)}: exit {done.returncode}\n{done.stderr}")
    return time.perf_counter() - start, json.loads(done.stdout)


def one_run(folder: Path) -> dict[str, Any]:
    """Suite, judgement and verification on one new record."""
    record = folder / "cpu.jsonl"
    suite_s, _ = answer(record, "probe", "--device", "cpu", "-o", str(record))
    points = [json.loads(line) for line in record.read_text().splitlines()]
    _, judged = answer(record, "check", str(record))
    verify_s, verified = answer(record, "probe", "--device", "cpu", "--verify", "--resume", "-o", str(record))
    return {
        "suite_s": suite_s,
        "points": len(points),
        "contended": sum(point.get("quality") == "contended" or point["status"] == "gated" for point in points),
        "trustworthy": judged["trustworthy"],
        "verify_s": verify_s,
        "all": verified["summary"],
        "quiet": verified["summary_quiet"],
        "loud_cases": len(verified["contended"]),
    }


def error(summary: dict[str, Any]) -> str:
    """`median % (largest %) of n`, or a dash."""
    if not summary["n"]:
        return "–"
    return f"{100 * summary['median_abs_error']:.1f} % (largest {100 * summary['max_abs_error']:.1f}) of {summary['n']}"


def row(name: str, run: dict[str, Any]) -> str:
    """One run as a line of the table."""
    cells = (
        name,
        f"{run['suite_s']:.0f} s",
        f"{run['contended']} of {run['points']} points",
        "yes" if run["trustworthy"] else "no",
        f"{run['verify_s']:.0f} s",
        error(run["all"]["time"]),
        error(run["quiet"]["time"]),
        error(run["all"]["memory"]),
    )
    return f"| {' | '.join(cells)} |\n"


def main(repeats: int) -> None:
    """All runs, quiet first; each line as soon as it is known."""
    sys.stdout.write(f"{HEAD}\n|{'---|' * HEAD.count(' |')}\n")
    for name, loaded in (("quiet", False), ("one core busy", True)):
        runs = []
        for number in range(repeats):
            with tempfile.TemporaryDirectory() as folder, one_core_busy(loaded):
                runs.append(one_run(Path(folder)))
            sys.stdout.write(row(f"{name}, {number + 1}", runs[-1]))
            sys.stdout.flush()
        for cases in ("all", "quiet"):
            errors = [run[cases]["time"]["median_abs_error"] for run in runs if run[cases]["time"]["n"]]
            if errors:
                middle = 100 * statistics.median(errors)
                sys.stdout.write(f"{name}, {cases} cases: median of the runs' median time errors {middle:.1f} %\n")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 5)
