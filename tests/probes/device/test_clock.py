"""Clocks: seconds per iteration, phases from mark to mark, on a clock that the test itself moves."""

from __future__ import annotations

import pytest

from probes.device import clock
from probes.device.clock import CpuClock, CudaClock, Mark, no_mark


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


class Device:
    """`torch.cuda`'s events on a device that works off a queue; the host takes no time to launch, but 1 ms to wait."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        torch = pytest.importorskip("torch")
        self.host_s = self.done_s = 0.0
        monkeypatch.setattr(torch.cuda, "synchronize", self.wait)
        monkeypatch.setattr(torch.cuda, "Event", lambda **_: Event(self))
        monkeypatch.setattr(clock.time, "perf_counter", lambda: self.host_s)

    def launch(self, seconds: float, *, host_s: float) -> None:
        """Put a kernel in the queue, which takes the host some time."""
        self.host_s += host_s
        self.done_s = max(self.done_s, self.host_s) + seconds

    def wait(self) -> None:
        self.host_s = max(self.host_s, self.done_s) + 1e-3


class Event:
    """A moment in the queue."""

    def __init__(self, device: Device) -> None:
        self.device, self.at_s = device, 0.0

    def record(self) -> None:
        self.at_s = max(self.device.done_s, self.device.host_s)

    def synchronize(self) -> None:
        self.device.host_s = max(self.device.host_s, self.at_s)

    def elapsed_time(self, end: Event) -> float:
        return 1e3 * (end.at_s - self.at_s)


class Step:
    """Ten small kernels and a large one: 1.1 ms on the device, 0.2 ms on the host before the large one is launched."""

    def __init__(self, device: Device) -> None:
        self.device, self.steps = device, 0

    def step(self, mark: Mark) -> None:
        self.steps += 1
        for _ in range(10):
            self.device.launch(1e-5, host_s=2e-5)
        self.device.launch(1e-3, host_s=0.0)
        mark("forward")


def test_a_batch_begins_with_a_step_that_is_not_timed_so_that_the_queue_is_full(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    device = Device(monkeypatch)
    trial = Step(device)

    batch = CudaClock().batch(trial, samples=2, iterations=1)

    # from an empty queue the first sample would take 0.2 ms of launching, 10 µs of the last small kernel and 1 ms
    assert batch.samples_s == pytest.approx((1.1e-3, 1.1e-3))
    assert batch.phases_s == {"forward": pytest.approx((1.1e-3, 1.1e-3))}
    assert trial.steps == 3


def test_what_the_host_takes_to_launch_a_step_is_noted(monkeypatch: pytest.MonkeyPatch) -> None:
    batch = CudaClock().batch(Step(Device(monkeypatch)), samples=2, iterations=1)

    assert batch.host_s == pytest.approx(0.2e-3)


def test_a_single_step_is_not_preceded_by_another(monkeypatch: pytest.MonkeyPatch) -> None:
    trial = Step(Device(monkeypatch))

    CudaClock().batch(trial, samples=1, iterations=1)

    assert trial.steps == 1


@pytest.mark.parametrize(("samples", "busy_s"), [(9, 3.3e-3), (2, 1.1e-3), (1, 1.01e-3)])
def test_what_is_read_at_work_is_read_while_the_device_is_busy(
    monkeypatch: pytest.MonkeyPatch, samples: int, busy_s: float
) -> None:
    device = Device(monkeypatch)
    left_s: list[float] = []

    def look(_trial: object) -> None:
        left_s.append(device.done_s - device.host_s)

    CudaClock(look).batch(Step(device), samples=samples, iterations=1)

    # a third of the samples is still to be done; of a single step what the host has got ahead of
    assert left_s == [pytest.approx(busy_s)]
