"""The clock with a canary, on a made-up machine whose speed is known at every moment."""

from __future__ import annotations

import pytest

from probes.device import canary_clock
from probes.device.canary_clock import CanaryClock
from probes.device.clock import Mark

CANARY_S, STEP_S = 0.002, 0.05


class Machine:
    """Stands for the module `time`: work takes as long as the machine is slow, and others take turns with us."""

    def __init__(self) -> None:
        self.cpu_s = 0.0
        self.wall_s = 0.0
        self.slow = 1.0
        """Work takes this much longer: the neighbour on the same core."""
        self.share = 1.0
        """Part of the time that this process has the core."""

    def work(self, seconds: float) -> None:
        self.cpu_s += seconds * self.slow
        self.wall_s += seconds * self.slow / self.share

    def process_time(self) -> float:
        return self.cpu_s

    def monotonic(self) -> float:
        return self.wall_s

    perf_counter = monotonic

    def sleep(self, seconds: float) -> None:
        self.wall_s += seconds


class Step:
    """A training step of the machine."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine

    def step(self, mark: Mark) -> None:
        self.machine.work(0.4 * STEP_S)
        mark("forward")
        self.machine.work(0.6 * STEP_S)
        mark("backward")


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Machine:
    made = Machine()
    monkeypatch.setattr(canary_clock, "time", made)
    return made


def clock(machine: Machine) -> CanaryClock:
    return CanaryClock(lambda: machine.work(CANARY_S))


def test_a_quiet_machine_gives_the_time_of_a_step_and_of_its_phases(machine: Machine) -> None:
    batch = clock(machine).batch(Step(machine), samples=3, iterations=1)

    assert batch.samples_s == pytest.approx([STEP_S] * 3)
    assert batch.phases_s["forward"] == pytest.approx([0.4 * STEP_S] * 3)
    assert batch.phases_s["backward"] == pytest.approx([0.6 * STEP_S] * 3)
    assert (batch.canary_ratio, batch.disturbed) == (pytest.approx(1.0), False)


def test_time_that_other_processes_took_is_not_the_steps(machine: Machine) -> None:
    timer = clock(machine)
    machine.share = 0.25

    batch = timer.batch(Step(machine), samples=2, iterations=1)

    assert batch.samples_s == pytest.approx([STEP_S] * 2)
    assert batch.wall_s > 2 * STEP_S / 0.25


def test_samples_beside_a_slow_canary_are_divided_by_it_and_called_disturbed(machine: Machine) -> None:
    timer = clock(machine)
    machine.slow = 1.5

    batch = timer.batch(Step(machine), samples=2, iterations=1)
    batch = timer.batch(Step(machine), samples=2, iterations=1)

    assert batch.canary_ratio == pytest.approx(1.5)
    assert batch.disturbed
    assert batch.samples_s == pytest.approx([STEP_S] * 2)


def test_a_few_percent_more_are_corrected_and_do_not_disturb(machine: Machine) -> None:
    timer = clock(machine)
    machine.slow = 1.08

    timer.batch(Step(machine), samples=1, iterations=1)
    batch = timer.batch(Step(machine), samples=1, iterations=1)

    assert not batch.disturbed
    assert batch.samples_s == pytest.approx([STEP_S])


def test_the_usual_time_is_that_of_the_quiet_moments_while_it_was_watched(machine: Machine) -> None:
    calls = iter(range(10**6))

    def canary() -> None:
        machine.slow = 1.5 if next(calls) // 40 % 2 else 1.0  # a neighbour that is busy half the time
        machine.work(CANARY_S)

    assert CanaryClock(canary).usual_s == pytest.approx(CANARY_S)


def test_a_canary_that_is_older_than_a_moment_is_taken_anew(machine: Machine) -> None:
    timer = clock(machine)
    machine.slow = 1.5
    machine.sleep(1.0)  # building the next model, say

    batch = timer.batch(Step(machine), samples=1, iterations=1)

    assert batch.canary_ratio == pytest.approx(1.5)  # and not the mean with the quiet one from before


def test_a_record_that_is_continued_keeps_the_speed_that_its_first_points_were_divided_to(machine: Machine) -> None:
    timer = CanaryClock(lambda: machine.work(CANARY_S), usual_s=2 * CANARY_S)  # the machine was slower then

    assert timer.batch(Step(machine), samples=1, iterations=1).samples_s == pytest.approx([2 * STEP_S])
