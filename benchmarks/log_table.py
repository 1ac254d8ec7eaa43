"""Reading time of a table of steps, as a ratio to a NumPy pass over the same text, and how it grows with the table.

The aims: at most 4 times `numpy.loadtxt` of the same columns, and twice the time for twice the rows. A colour in each
row makes the reader go row by row, which is shown for comparison. The times are of the process, not of the clock,
so that other work of the machine counts little; memory is the peak beyond what is in use before.
Run it with the interpreter that has mpplan: `python -m benchmarks.log_table [rows]`.
"""

from __future__ import annotations

import io
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


def read(content: bytes) -> None:
    """Read the run of a table."""
    read_log(io.BytesIO(content), "run.csv")


def with_numpy(content: bytes) -> None:
    """Parse the numbers of a table, and nothing else."""
    np.loadtxt(io.BytesIO(content), delimiter=",", skiprows=1, usecols=range(4))


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


def main(rows: int) -> None:
    """Measure and print one line per figure."""
    whole, half, coloured = table(rows), table(rows // 2), table(rows, coloured=True)
    by_columns, by_numpy = seconds(read, whole), seconds(with_numpy, whole)
    lines = [
        f"{by_columns / by_numpy:6.2f} x numpy.loadtxt  aim 4",
        f"{by_columns / seconds(read, half):6.2f} x half the rows  aim 2",
        f"{seconds(read, coloured) / by_columns:6.2f} x row by row",
        f"{peak_bytes(whole) / rows:6.0f} bytes of memory a row, {len(whole) / rows:.0f} bytes of text a row",
    ]
    sys.stdout.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else ROWS)
