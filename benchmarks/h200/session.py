"""The measurements of a GPU that is at hand for half an hour, as commands of at most eight minutes, in the order of
their worth.

    python benchmarks/h200/session.py suite  --out DIR
    python benchmarks/h200/session.py verify --out DIR --record suite-1.jsonl
    python benchmarks/h200/session.py second --out DIR --record suite-1.jsonl

`suite`: the default suite as a user runs it, then the limits by a loop written out by hand. `verify`: the meter,
then models that were not run, predicted from the record and run. `second`: the suite once more in another process,
whether the two records agree, and the claims of the literature.

Each writes at most eight files to DIR; a record is flushed line by line, so a command may be cut off at any point. A
rehearsal on the CPU runs the same code: `--device cpu --minutes 2`.
"""

from __future__ import annotations

import argparse
import gzip
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
HERE = Path(__file__).resolve().parent
REFUSED = 2
"""Exit code of `mpplan probe` for a record that it does not go on with."""
LARGEST_BYTES = 15 * 2**20
"""Larger files are compressed at the end."""


def say(text: str) -> None:
    """A line at once, so that a log that is cut off holds it."""
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


class Session:
    """One command: a directory, a device and a deadline."""

    def __init__(self, out: Path, device: str, minutes: float, record: Path | None) -> None:
        self.out, self.device, self.record = out, device, record
        self.end = time.monotonic() + 60.0 * minutes
        out.mkdir(parents=True, exist_ok=True)

    @property
    def left_s(self) -> float:
        """Seconds to the deadline."""
        return self.end - time.monotonic()

    def run(self, name: str, *command: str, reserve_s: float = 5.0) -> int:
        """Run a Python command with its output in the log and here, stopped in time; its exit code."""
        limit = max(self.left_s - reserve_s, 1.0)
        say(f"== {name}: at most {limit:.0f} s")
        path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
        with (self.out / "log.txt").open("ab") as log:
            log.write(f"== {name}\n".encode())
            log.flush()
            environment = os.environ | {"PYTHONPATH": path}
            process = subprocess.Popen([sys.executable, *command], stdout=log, stderr=log, env=environment)
            try:
                code = process.wait(limit)
            except subprocess.TimeoutExpired:
                process.terminate()  # the probe keeps what it has and ends
                code = _wait_or_kill(process)
        say(f"== {name}: exit {code}, {self.left_s:.0f} s left")
        return code

    def probe(self, name: str, record: Path, *more: str, reserve_s: float = 20.0) -> int:
        """`mpplan probe` into a record, with the time that is left as its budget."""
        device = "cpu" if self.device == "cpu" else "gpu"
        budget = max(self.left_s - reserve_s, 5.0)
        command = ("-m", "mpplan", "probe", "--device", device, "--budget", f"{budget:.0f}s", "-o", str(record), *more)
        return self.run(name, *command, reserve_s=reserve_s / 2)

    def finish(self) -> None:
        """Compress what grew too large, list what there is."""
        for path in sorted(self.out.iterdir()):
            if path.stat().st_size > LARGEST_BYTES:
                with path.open("rb") as source, gzip.open(f"{path}.gz", "wb") as target:
                    shutil.copyfileobj(source, target)
                path.unlink()
        for path in sorted(self.out.iterdir()):
            say(f"{path.stat().st_size:>10} {path.name}")


def _wait_or_kill(process: subprocess.Popen[bytes]) -> int:
    try:
        return process.wait(20)
    except subprocess.TimeoutExpired:
        process.kill()
        return process.wait()


def suite(session: Session) -> None:
    """The suite, then the limits."""
    record = session.out / "suite-1.jsonl"
    session.probe("suite", record, reserve_s=60.0)
    limits = ("--device", session.device, "--record", str(record))
    session.run("limits", str(HERE / "measure_limits.py"), str(session.out / "limits.json"), *limits)


def verify(session: Session) -> None:
    """The meter, then the verification on top of the first record, or of kernels measured now."""
    seconds = "24" if session.device == "cuda" else "2"
    meter = (str(session.out / "meter.json"), "--device", session.device, "--seconds", seconds)
    session.run("meter", str(HERE / "measure_meter.py"), *meter)
    record = session.out / "verify.jsonl"
    if session.record is not None and session.record.exists():
        shutil.copyfile(session.record, record)
        if session.probe("verify", record, "--resume", "--verify", "--workload", "canary") != REFUSED:
            return
        record.unlink(missing_ok=True)  # of another GPU or driver than the one lent now
    kernels = ("--workload", "bandwidth,launch,attention,gemm", "--suite", "quick")
    session.probe("verify with kernels of its own", record, "--verify", *kernels)


def second(session: Session) -> None:
    """The suite again, the agreement of the two records, the claims."""
    record = session.out / "suite-2.jsonl"
    session.probe("second suite", record, reserve_s=40.0)
    first = session.record if session.record is not None else record
    out = session.out
    session.run("agreement", str(HERE / "compare_records.py"), str(first), str(record), str(out / "agreement.json"))
    session.run("claims", str(HERE / "measure_claims.py"), str(record), str(out / "claims.json"))


COMMANDS = {"suite": suite, "verify": verify, "second": second}


def main() -> None:
    """Run one command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=COMMANDS)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--record", type=Path, help="the first suite's record, for verify and second")
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--minutes", type=float, default=8.0)
    asked = parser.parse_args()
    session = Session(asked.out, asked.device, asked.minutes, asked.record)
    try:
        COMMANDS[asked.command](session)
    finally:
        session.finish()


if __name__ == "__main__":
    main()
