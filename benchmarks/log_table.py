"""Reading time of a table of steps, as a ratio to a plain pass over the same text, and how it grows with the table.

The aims: at most 4 times `numpy.loadtxt` of the same columns for CSV, at most 4 times `json.loads` of each line for
JSON Lines, and twice the time for twice the rows. A colour in each row makes the reader go row by row, which is shown
for comparison. The times are of the process, not of the clock, so that other work of the machine counts little; memory
is the peak beyond what is in use before.
Run it with the interpreter that has mpplan: `python -m benchmarks.log_table [rows]`.
"""

from __future__ import annotations

import io
import json
import statistics
import sys
import time
import tracemalloc
from collections.abc import Callable

import numpy as np

from planner.runlog.read import read_log

ROWS = 200_000
ROUNDS = 3


def table(rows: int, *, coloured: bool = False) -> bytes:
    """Return a table of steps with times of day, as W&B exports one."""
    note = "\x1b[32ma" if coloured else "a"
    lines = [f"{row},{1764288000 + 2.5 * row:.3f},{2.5 + row % 7 / 100:.4f},512,{note}" for row in range(1, rows + 1)]
    return ("\n".join(["step,timestamp,step_time_s,global_batch,note", *lines]) + "\n").encode()


def json_lines(rows: int, *, coloured: bool = False) -> bytes:
    """Return the same table as JSON Lines."""
    colour = "\x1b[32m" if coloured else ""
    lines = [
        json.dumps(
            {"step": row, "timestamp": 1764288000 + 2.5 * row, "step_time_s": 2.5 + row % 7 / 100, "global_batch": 512}
        )
        for row in range(1, rows + 1)
    ]
    return ("\n".join(f"{{{colour}{line[1:]}" for line in lines) + "\n").encode()


def read(content: bytes) -> None:
    """Read the run of a table."""
    read_log(io.BytesIO(content), "run.csv")


def with_numpy(content: bytes) -> None:
    """Parse the numbers of a table, and nothing else."""
    np.loadtxt(io.BytesIO(content), delimiter=",", skiprows=1, usecols=range(4))


def with_json(content: bytes) -> None:
    """Parse each line of JSON Lines, and nothing else."""
    for line in content.decode().splitlines():
        json.loads(line)


def seconds(work: Callable[[bytes], None], content: bytes) -> float:
    """Return the median processor time of a few runs in seconds."""
    times = []
    for _ in range(ROUNDS):
        start = time.process_time()
        work(content)
        times.append(time.process_time() - start)
    return statistics.median(times)


def peak_bytes(content: bytes) -> int:
    """Return the peak memory of reading a table in bytes."""
    tracemalloc.start()
    read(content)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return peak


def figures(what: str, make: Callable[..., bytes], plain: Callable[[bytes], None], named: str, rows: int) -> list[str]:
    """Measure one kind of table, and return one line per figure."""
    whole, half, coloured = make(rows), make(rows // 2), make(rows, coloured=True)
    by_columns, by_plain = seconds(read, whole), seconds(plain, whole)
    return [
        what,
        f"{by_columns / by_plain:6.2f} x {named}  aim 4",
        f"{by_columns / seconds(read, half):6.2f} x half the rows  aim 2",
        f"{seconds(read, coloured) / by_columns:6.2f} x row by row",
        f"{peak_bytes(whole) / rows:6.0f} bytes of memory a row, {len(whole) / rows:.0f} bytes of text a row",
    ]


def main(rows: int) -> None:
    """Measure and print one line per figure."""
    lines = figures("CSV", table, with_numpy, "numpy.loadtxt", rows)
    lines += figures("JSON Lines", json_lines, with_json, "json.loads", rows)
    sys.stdout.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else ROWS)
