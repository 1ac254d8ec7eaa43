"""The cost of a store with many records to an estimate: a listing from the files compared with one from the index.

Both are measured in one run. The store is made for it in a temporary folder: 100 records of 11 points and one large
record. The figures are CPU time.

Run it from the repository's root: `python -m benchmarks.records.store [MB of the large record]`.
"""

from __future__ import annotations

import os
import resource
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from planner.records.home import records_dir
from planner.records.index import SETTLED_NS
from planner.records.jsonl import to_line
from planner.records.store import list_records
from planner.units import GIGA, MEGA
from tests.planner.recorded import H200, a_canary, a_measurement, write_record

SMALL = 100


def fill(store: Path, large_mb: float) -> None:
    """Write the records."""
    points = [a_measurement(probe_id=f"p{number}", seq=number + 1, **H200) for number in range(10)]
    for number in range(SMALL):
        write_record(store / f"small-{number:03d}.jsonl", a_canary(**H200), *points)
    line = to_line(a_measurement(**H200))
    with (store / "large.jsonl").open("w", encoding="utf-8") as file:
        for number in range(int(large_mb * MEGA / len(line))):
            file.write(line.replace("gemm/1024x1024x1024", f"gemm/{number}") + "\n")


def seconds(work: Callable[[], object]) -> float:
    """Return the CPU time of `work`."""
    began = time.process_time()
    work()
    return time.process_time() - began


def main() -> None:
    """Measure and print."""
    large_mb = float(sys.argv[1]) if len(sys.argv) > 1 else 50.0
    with tempfile.TemporaryDirectory() as folder:
        os.environ["XDG_DATA_HOME"] = folder
        fill(records_dir(), large_mb)
        time.sleep(1.1 * SETTLED_NS / GIGA)
        files, index = seconds(list_records), min(seconds(list_records) for _ in range(5))
    peak_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3
    sys.stdout.write(
        f"{SMALL} small records and one of {large_mb:g} MB, listed\n"
        f"  from their files   {files:8.3f} s, peak memory {peak_mb:.0f} MB\n"
        f"  from the index     {index:8.3f} s, 1/{files / index:.0f} of that\n"
    )


if __name__ == "__main__":
    main()
