"""Clocks: seconds per iteration, phases from mark to mark, on a clock that the test itself moves."""

from __future__ import annotations

import pytest

from probes.device import clock
from probes.device.clock import CpuClock, Mark, no_mark


class Work:
    """Takes a quarter of a second forward and half a second backward, and what comes before is the caller's."""

    def __init__(self) -> None:
        self.now = 100.0

    def step(self, mark: Mark) -> None:
        self.now += 0.25
        mark("forward")
        self.now += 0.5
        mark("backward")
        self.now += 0.125  # after the last mark: in the step, in no phase


@pytest.fixture
def work(monkeypatch: pytest.MonkeyPatch) -> Work:
    trial = Work()
    monkeypatch.setattr(clock.time, "perf_counter", lambda: trial.now)
    return trial


def test_a_sample_is_the_time_of_an_iteration(work):
    batch = CpuClock().batch(work, samples=3, iterations=4)

    assert batch.samples_s == (0.875, 0.875, 0.875)
    assert batch.wall_s == 3 * 4 * 0.875


def test_a_phase_runs_from_the_mark_before_it_with_one_value_an_iteration(work):
    batch = CpuClock().batch(work, samples=2, iterations=2)

    # the second iteration of a region begins with what the first did after its last mark
    assert batch.phases_s == {"forward": (0.25, 0.375, 0.25, 0.375), "backward": (0.5, 0.5, 0.5, 0.5)}


def test_a_trial_without_phases_has_none(work):
    class Plain:
        def step(self, mark: Mark) -> None:
            work.step(no_mark)

    assert CpuClock().batch(Plain(), samples=1, iterations=1).phases_s == {}
