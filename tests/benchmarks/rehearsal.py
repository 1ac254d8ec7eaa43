"""The campaign on the fake GPU, command by command, each in processes of its own: `make campaign-rehearsal`.

    python -m tests.benchmarks.rehearsal FOLDER [--cut]

With `--cut`, each command is killed with all of its processes once it has begun to write, what it left is read, and it
is run again to its end. Exit code 1 where a command fails or something that it left cannot be read.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from planner.records.jsonl import read_measurements

ROOT = Path(__file__).parents[2]
CAMPAIGN = ROOT / "benchmarks" / "h200" / "campaign.py"
STARTUP = ROOT / "tests" / "probes" / "fake_cuda" / "startup"
LIMIT_S = 600.0
CUT_AFTER_S = 1.0
"""After the first line of a record."""
LEFT = {
    "smoke": ("doctor.json", "quick.jsonl", "quick.jsonl.gz"),
    "plans": ("suite-1.jsonl", "suite-1.jsonl.gz"),
    "products": ("suite-1.jsonl", "limits.json", "meter.json"),
    "verify": ("suite-1.jsonl",),
    "short": ("suite-1.jsonl", "limits.json", "meter.json"),
    "again": ("suite-2.jsonl", "agreement.json", "claims.json"),
}
"""What a command must leave."""
DRIVER = """#!/bin/sh
echo "name, driver_version, vbios_version, power.limit [W], clocks.max.sm [MHz], memory.total [MiB], mig.mode.current, \
ecc.mode.current"
echo "NVIDIA H200, 580.00, 96.00.00, 700.00 W, 1980 MHz, 143771 MiB, Disabled, Enabled"
"""
"""Stands for `nvidia-smi`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    """How a command ended, and what is wrong with what it left."""

    command: str
    code: int
    seconds: float
    stdout: str
    problems: list[str]


def rehearse(command: str, out: Path, *more: str) -> Done:
    """Run one command of the campaign to its end."""
    began = time.monotonic()
    done = subprocess.run(
        _words(command, out, *more), env=_environment(out), capture_output=True, text=True, timeout=LIMIT_S, check=False
    )
    problems = [f"{name} is missing" for name in LEFT[command] if not (out / name).exists()] + unreadable(out)
    if done.returncode != 0:
        problems.append(f"exit code {done.returncode}: {done.stdout.strip()[-400:]} {done.stderr.strip()[-400:]}")
    seconds = time.monotonic() - began
    return Done(command=command, code=done.returncode, seconds=seconds, stdout=done.stdout, problems=problems)


def cut_off(command: str, out: Path) -> Done:
    """Start a command and kill it with all its processes, soon after it has begun to write results."""
    out.mkdir(parents=True, exist_ok=True)
    record = out / next(name for name in LEFT[command] if name.endswith(".jsonl"))
    before, began = _size(record), time.monotonic()
    with subprocess.Popen(
        _words(command, out), env=_environment(out), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        start_new_session=True,
    ) as process:  # fmt: skip
        while process.poll() is None and _size(record) == before and time.monotonic() - began < LIMIT_S:
            time.sleep(0.05)
        time.sleep(CUT_AFTER_S)
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        code = process.wait()
    problems = unreadable(out)
    return Done(command=command, code=code, seconds=time.monotonic() - began, stdout="", problems=problems)


def unreadable(out: Path) -> list[str]:
    """What cannot be read of a folder; the last line of a record may be cut off."""
    problems = []
    for path in sorted(path for path in out.iterdir() if path.is_file()):
        try:
            if path.name.endswith((".trace.jsonl", "meter.jsonl")):
                for line in path.read_text(encoding="utf-8").splitlines()[:-1]:
                    json.loads(line)
            elif path.suffix == ".jsonl":
                problems += [
                    f"{path.name}: {p.what}" for p in read_measurements(path).damage if "cut off" not in p.what
                ]
            elif path.suffix == ".gz":
                gzip.decompress(path.read_bytes())
            elif path.suffix == ".json":
                json.loads(path.read_text(encoding="utf-8"))
        except Exception as error:
            problems.append(f"{path.name}: {type(error).__name__}: {error}")
    return problems


def _results(out: Path) -> dict[str, int]:
    """Sizes of what was found so far; a log is no result."""
    files = [path for path in out.iterdir() if path.is_file() and path.suffix in (".json", ".jsonl", ".gz")]
    return {path.name: path.stat().st_size for path in files}


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def _words(command: str, out: Path, *more: str) -> list[str]:
    return [sys.executable, str(CAMPAIGN), command, "--out", str(out), *more]


def _environment(out: Path) -> dict[str, str]:
    """The fake GPU in every process that measures, and a driver that answers."""
    tools = out.parent / f"{out.name}-driver"
    tools.mkdir(parents=True, exist_ok=True)
    driver = tools / "nvidia-smi"
    driver.write_text(DRIVER, encoding="utf-8")
    driver.chmod(0o755)
    fixed = {"PYTHONPATH": os.pathsep.join([str(STARTUP), str(ROOT)]), "OMP_NUM_THREADS": "1"}
    return os.environ | fixed | {"PATH": os.pathsep.join([str(tools), os.environ["PATH"]])}


def main() -> int:
    """Rehearse all commands; the number of them that went wrong, at most 1."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("--cut", action="store_true", help="kill each command once, then let it go on")
    asked = parser.parse_args()
    shutil.rmtree(asked.out, ignore_errors=True)
    wrong = 0
    for command in LEFT:
        for done in ([cut_off(command, asked.out)] if asked.cut else []) + [rehearse(command, asked.out)]:
            kept = ", ".join(f"{name} {size}" for name, size in _results(asked.out).items())
            sys.stdout.write(f"{done.stdout}## {command}: exit code {done.code} after {done.seconds:.0f} s; {kept}\n")
            for problem in done.problems:
                sys.stdout.write(f"!! {problem}\n")
            sys.stdout.flush()
            wrong += bool(done.problems)
    return min(wrong, 1)


if __name__ == "__main__":
    sys.exit(main())
