"""The gate: other load is what all CPUs were busy with less our own."""

from __future__ import annotations

import math
import os
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest

from probes.timing.quiet import CpuReading, LoadGate, other_load_ratio, read_cpu


def reading(busy_s: float, total_s: float, own_s: float) -> CpuReading:
    return CpuReading(busy_s=busy_s, total_s=total_s, own_s=own_s, wall_s=0.0)


@pytest.mark.parametrize(
    ("busy_s", "own_s", "expected"),
    [
        (2.0, 2.0, 0.0),  # two CPUs for one second, all ours
        (2.0, 1.0, 0.5),  # half of it ours
        (0.5, 0.0, 0.25),
        (1.0, 1.1, 0.0),  # ticks are coarse: never below 0
    ],
)
def test_other_load_is_a_share_of_all_cpus(busy_s: float, own_s: float, expected: float) -> None:
    assert other_load_ratio(reading(10.0, 20.0, 5.0), reading(10.0 + busy_s, 22.0, 5.0 + own_s)) == expected


def test_load_that_cannot_be_read_is_unknown_and_lets_samples_pass() -> None:
    assert other_load_ratio(None, reading(1.0, 1.0, 1.0)) is None
    assert LoadGate().accepts(None)


def test_more_than_five_percent_is_too_much() -> None:
    assert LoadGate().accepts(0.05)
    assert not LoadGate().accepts(0.051)


@pytest.fixture
def busy_neighbours() -> Iterator[None]:
    """As many as keep a tenth of the CPUs busy, and at least one, from when all of them are at work."""
    count = math.ceil((os.cpu_count() or 1) / 10)
    command = [sys.executable, "-c", "print('busy', flush=True)\nwhile True: pass"]
    processes = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(count)]
    try:
        for process in processes:
            assert process.stdout is not None
            assert process.stdout.readline() == "busy\n"
        yield
    finally:
        for process in processes:
            process.kill()
            process.communicate()


@pytest.mark.skipif(read_cpu() is None, reason="this system does not tell its CPU time")
def test_a_busy_process_beside_us_is_seen(busy_neighbours: None) -> None:
    gate = LoadGate()

    start = gate.open()
    time.sleep(1.0)
    load = gate.judge(start)

    # At least a tenth of the machine, with two cores the half of it. Our own process slept.
    assert load is not None
    assert not gate.accepts(load)
