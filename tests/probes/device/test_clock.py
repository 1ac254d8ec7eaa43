"""The clock of a CPU: seconds per iteration, and phases that add up to it."""

from __future__ import annotations

import pytest

from probes.device import clock
from probes.device.clock import CpuClock


class Ticking:
    """A machine whose time passes only when a trial says so."""

    def __init__(self) -> None:
        self.now = 0.0

    def perf_counter(self) -> float:
        return self.now

    def step(self, mark) -> None:
        self.now += 2.0
        mark("forward")
        self.now += 3.0
        mark("backward")


@pytest.fixture
def trial(monkeypatch: pytest.MonkeyPatch) -> Ticking:
    ticking = Ticking()
    monkeypatch.setattr(clock, "time", ticking)
    return ticking


def test_a_sample_is_the_mean_of_its_iterations(trial: Ticking) -> None:
    batch = CpuClock().batch(trial, samples=4, iterations=3)

    # 2 s forward and 3 s backward
    assert batch.samples_s == (5.0,) * 4
    assert batch.wall_s == 60.0


def test_phases_have_one_value_per_iteration(trial: Ticking) -> None:
    batch = CpuClock().batch(trial, samples=2, iterations=3)

    assert batch.phases_s == {"forward": (2.0,) * 6, "backward": (3.0,) * 6}


def test_time_between_samples_belongs_to_no_phase(trial: Ticking) -> None:
    first = CpuClock().batch(trial, samples=1, iterations=1)
    trial.now += 100.0
    second = CpuClock().batch(trial, samples=1, iterations=1)

    assert first.phases_s == second.phases_s
