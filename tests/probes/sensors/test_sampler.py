"""The sampler keeps the readings that changed, with one before and one after the block."""

from __future__ import annotations

import time

from probes.sensors.interface import Reading, State
from probes.sensors.sampler import Sampler


class Steps:
    """A counter that moves on at every tenth reading; its clock is the number of readings."""

    name, scope, missing = "steps", "board", {}

    def __init__(self) -> None:
        self.reads = self.states = 0

    def read(self) -> Reading:
        self.reads += 1
        return Reading(
            time_s=self.reads / 100, energy_j=float(self.reads // 10), power_instant_w=700.0, power_average_w=None
        )

    def state(self) -> State:
        self.states += 1
        return State(time_s=self.reads / 100)

    def processes(self) -> int | None:
        return None

    def close(self) -> None:
        return


def sampled() -> tuple[Steps, Sampler]:
    sensor = Steps()
    with Sampler(sensor, poll_s=1e-4) as sampler:
        while sensor.reads < 100:
            time.sleep(1e-3)
    return sensor, sampler


def test_a_reading_that_repeats_the_last_one_is_not_kept() -> None:
    sensor, sampler = sampled()

    counts = [reading.energy_j for reading in sampler.trace.readings]
    # every value once, and the reading after the block in any case
    assert counts[:-1] == [float(i) for i in range(len(counts) - 1)]
    assert counts[-1] == float(sensor.reads // 10)
    assert len(counts) < sensor.reads / 5


def test_slow_readings_are_taken_at_both_ends_and_every_quarter_of_a_second() -> None:
    sensor, sampler = sampled()

    # 100 readings of 10 ms each are a second: 4 quarters, and both ends
    assert 5 <= len(sampler.trace.states) <= 6 + (sensor.reads - 100) // 25
