"""Time and accuracy of the probe on this CPU: `python -m benchmarks.probe_cpu [runs]`, about 25 minutes.

Each run is a fresh `mpplan probe --device cpu --verify`. First all runs are made on the machine as it is, then with
another process that keeps one core busy half the time, in bursts of 0.1 to 1.5 s, then with one that never rests. Run
it on an otherwise idle machine, with the interpreter that has mpplan[probe]. It prints a Markdown table, line by line.
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

BUSY = """
import random, sys, time
share = float(sys.argv[1])
while True:
    burst = random.uniform(0.1, 1.5)
    end = time.monotonic() + burst
    while time.monotonic() < end:
        sum(range(10000))
    time.sleep(burst * (1 / share - 1))
"""
MACHINES = {"as it is": 0.0, "one core busy half the time": 0.5, "one core busy": 1.0}
HEAD = "| machine | time | points contended | `check` trusts it | error in time | of cases called ok | in memory |"


@contextmanager
def busy_core(share: float) -> Iterator[None]:
    """Keep a core busy for this share of the time, in another process, while the block runs."""
    burner = subprocess.Popen([sys.executable, "-c", BUSY, str(share)]) if share else None
    try:
        yield
    finally:
        if burner:
            burner.kill()
            burner.wait()


def answer(record: Path, *words: str) -> tuple[float, dict[str, Any]]:
    """Return the seconds and the document of one command, in a fresh process."""
    start = time.perf_counter()
    command = [sys.executable, "-m", "mpplan", *words, "--json"]
    apart = {**os.environ, "XDG_DATA_HOME": str(record.parent)}  # excludes the developer's own records
    done = subprocess.run(command, capture_output=True, text=True, env=apart)
    if done.returncode not in (0, 6):
        raise SystemExit(f"{' '.join(words)}: exit {done.returncode}\n{done.stderr}")
    return time.perf_counter() - start, json.loads(done.stdout)


def one_run(folder: Path) -> dict[str, Any]:
    """Run suite, verification and judgement on one new record."""
    record = folder / "cpu.jsonl"
    seconds, verified = answer(record, "probe", "--device", "cpu", "--verify", "-o", str(record))
    points = [json.loads(line) for line in record.read_text().splitlines()]
    _, judged = answer(record, "check", str(record))
    return {
        "seconds": seconds,
        "points": len(points),
        "contended": sum(point.get("quality") == "contended" or point["status"] == "gated" for point in points),
        "trustworthy": judged["trustworthy"],
        "all": verified["summary"],
        "quiet": verified["summary_quiet"],
    }


def error(summary: dict[str, Any]) -> str:
    """Return `median % (largest %) of n`, or a dash."""
    if not summary["n"]:
        return "–"
    return f"{100 * summary['median_abs_error']:.1f}% (largest {100 * summary['max_abs_error']:.1f}) of {summary['n']}"


def row(name: str, run: dict[str, Any]) -> str:
    """Return one run as a line of the table."""
    cells = (
        name,
        f"{run['seconds']:.0f} s",
        f"{run['contended']} of {run['points']}",
        "yes" if run["trustworthy"] else "no",
        error(run["all"]["time"]),
        error(run["quiet"]["time"]),
        error(run["all"]["memory"]),
    )
    return f"| {' | '.join(cells)} |\n"


def main(repeats: int) -> None:
    """Make all runs, quiet ones first, and print each line as soon as it is known."""
    sys.stdout.write(f"{HEAD}\n|{'---|' * HEAD.count(' |')}\n")
    for name, share in MACHINES.items():
        runs = []
        for number in range(repeats):
            with tempfile.TemporaryDirectory() as folder, busy_core(share):
                runs.append(one_run(Path(folder)))
            sys.stdout.write(row(f"{name}, {number + 1}", runs[-1]))
            sys.stdout.flush()
        errors = [run["all"]["time"]["median_abs_error"] for run in runs if run["all"]["time"]["n"]]
        if errors:
            middle = 100 * statistics.median(errors)
            sys.stdout.write(f"{name}: median of the runs' median time errors {middle:.1f}%\n")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 5)
