"""Cold start of the program as a ratio to `python -c "import numpy"`: the aim is at most 2 for help, 4 for estimate.

Each command runs in a fresh process, interleaved round by round so that a drifting machine affects all commands alike;
the medians are compared. Run it with the interpreter that has mpplan: `python -m benchmarks.startup [rounds]`.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time

MAIN_JOB = "mpplan estimate --params 70B --precision fp8"
COMMANDS = {
    "import numpy": ("-c", "import numpy"),
    "mpplan --help": ("-m", "mpplan", "--help"),
    "mpplan --version": ("-m", "mpplan", "--version"),
    MAIN_JOB: ("-m", *MAIN_JOB.split()),
}
AIMS = {"mpplan --help": 2.0, MAIN_JOB: 4.0}


def seconds(arguments: tuple[str, ...]) -> float:
    """Return the wall-clock time of one fresh process in seconds.

    Raises:
        CalledProcessError: the command failed, so its time would mean nothing.
    """
    start = time.perf_counter()
    subprocess.run([sys.executable, *arguments], check=True, capture_output=True)
    return time.perf_counter() - start


def main(rounds: int) -> None:
    """Measure and print one line per command."""
    os.environ.setdefault("XDG_DATA_HOME", tempfile.gettempdir())  # excludes the developer's own records
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # containers set it; an installed program has its byte code
    times: dict[str, list[float]] = {name: [] for name in COMMANDS}
    for arguments in COMMANDS.values():
        seconds(arguments)  # a first run without measuring: byte code and disk cache
    for _ in range(rounds):
        for name, arguments in COMMANDS.items():
            times[name].append(seconds(arguments))
    base = statistics.median(times["import numpy"])
    for name, durations_s in times.items():
        median = statistics.median(durations_s)
        aim = f"  aim {AIMS[name]:.0f}" if name in AIMS else ""
        sys.stdout.write(f"{median * 1e3:7.0f} ms  {median / base:5.2f} x{aim}  {name}\n")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 15)
