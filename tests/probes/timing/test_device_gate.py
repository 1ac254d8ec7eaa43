"""The gate of a GPU: another process on the device, or a host that is too busy to launch kernels in time."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from probes.ranks.team import ALONE
from probes.timing import device_gate
from probes.timing.device_gate import LAUNCH_BOUND_KINDS, DeviceGate, in_use
from probes.timing.quiet import CpuReading, Gate
from probes.timing.team_gate import TeamGate


def counts(*values: int | None) -> Iterator[int | None]:
    yield from values


def gate_of(*processes: int | None, others_s: float = 0.0) -> DeviceGate:
    """A gate on a host of 16 CPUs, of which others use `others_s` CPU seconds in each second between two readings."""
    numbers, passed = counts(*processes), counts(*range(100))

    def host() -> CpuReading:
        at_s = float(next(passed) or 0)
        return CpuReading(busy_s=(others_s + 1.0) * at_s, total_s=16.0 * at_s, own_s=at_s, wall_s=at_s)

    return DeviceGate(lambda: next(numbers), host)


def test_a_process_that_comes_to_the_gpu_later_closes_the_gate() -> None:
    gate = gate_of(0, 1, 1, 2)  # before our context, after it, while quiet, with a second process

    start = gate.open()

    assert gate.judge(start) == 0.0
    assert gate.judge(start) == 1.0
    assert not gate.accepts(1.0)
    assert not gate.for_kinds(["block"]).accepts(1.0)


def test_what_was_counted_before_ranks_connected_decides_who_was_there_first() -> None:
    """A container that hides whose processes are whose shows our own, which has a context since the ranks connected."""
    gate = DeviceGate(lambda: 1, lambda: None, before=0)

    assert gate.others == 0
    assert gate.judge(gate.open()) is None
    assert TeamGate(DeviceGate(lambda: 1, lambda: None, before=2), ALONE).others == 2


def test_a_process_that_was_on_the_gpu_before_us_keeps_the_gate_closed() -> None:
    gate = gate_of(1, 2, 2)

    assert gate.judge(gate.open()) == 1.0
    assert gate.others == 1


def test_a_process_that_comes_between_two_groups_is_not_taken_for_ours() -> None:
    gate = gate_of(0, 1, 1, 2)

    first, second = gate.for_kinds(["block"]), gate.for_kinds(["gemm"])

    assert first.judge(first.open()) == 0.0
    assert second.judge(second.open()) == 1.0


def test_the_host_s_load_is_reported_where_the_gpu_does_not_tell_its_processes() -> None:
    gate = gate_of(None, None, None, others_s=4.0)

    assert gate.judge(gate.open()) == pytest.approx(4 / 16)


def test_a_load_that_nobody_tells_is_unknown_and_accepted() -> None:
    gate = DeviceGate(lambda: None, lambda: None)

    assert gate.judge(gate.open()) is None
    assert gate.for_kinds(["launch"]).accepts(None)


@pytest.mark.parametrize(
    ("others_s", "launch_bound", "device_bound"),
    [(2.0, True, True), (4.0, True, True), (4.1, False, True), (15.0, False, True)],
)
def test_a_busy_host_closes_the_gate_for_what_is_launch_bound_alone(
    others_s: float, launch_bound: bool, device_bound: bool
) -> None:
    gate = gate_of(0, 0, 0, others_s=others_s)
    load = gate.judge(gate.open())

    assert load == pytest.approx(min(others_s / 16, 0.99))
    for kind in LAUNCH_BOUND_KINDS:
        assert gate.for_kinds([kind]).accepts(load) is launch_bound
    assert gate.for_kinds(["gemm", "attention"]).accepts(load) is device_bound


def test_a_host_that_is_busy_all_over_is_not_taken_for_a_process_on_the_gpu() -> None:
    gate = gate_of(0, 0, 0, others_s=16.0)
    load = gate.judge(gate.open())

    assert load is not None
    assert load < 1.0
    assert gate.accepts(load)


def test_both_gates_are_judged_over_the_same_length() -> None:
    gate = gate_of(0)
    strict: Gate = gate.for_kinds(["verify"])

    assert strict.window_s == gate.window_s == 0.25


@pytest.mark.parametrize(("cores", "accepted"), [(4, True), (2, False)])
def test_the_process_that_tracks_memory_is_no_other_load_on_a_host_with_a_core_for_it(
    monkeypatch: pytest.MonkeyPatch, cores: int, accepted: bool
) -> None:
    """It keeps one core busy, which is a quarter of a host with four, where nothing else may then run at all."""
    monkeypatch.setattr(device_gate.os, "cpu_count", lambda: cores)
    passed = iter(range(10))

    def host() -> CpuReading:
        at_s = float(next(passed))
        return CpuReading(busy_s=2.1 * at_s, total_s=cores * at_s, own_s=at_s, wall_s=at_s)

    tracking = iter(range(10))
    gate = DeviceGate(lambda: 0, host, helper_s=lambda: float(next(tracking))).for_kinds(["verify"])

    load = gate.judge(gate.open())

    assert load == pytest.approx(0.1 / 4 if accepted else 1.1 / 2)
    assert gate.accepts(load) is accepted


def test_what_uses_a_gpu_before_us_is_said_whether_or_not_it_is_listed() -> None:
    assert in_use(0, 0.04) is None
    assert "another process uses the GPU" in str(in_use(1, 0.9))
    assert "2 other processes use the GPU" in str(in_use(2, 0.0))
    assert "was 37% busy before the probe used it, although no compute process is listed" in str(in_use(0, 0.37))


def test_a_server_of_mps_without_clients_is_said_and_is_no_other_process() -> None:
    assert "MPS) without clients is on the GPU; it is not counted" in str(in_use(0, 0.0, mps_server=True))
    assert "was 37% busy" in str(in_use(0, 0.37, mps_server=True))
    assert "is the only process listed" in str(in_use(0, 0.37, mps_server=True))
    assert "another process uses the GPU" in str(in_use(1, 0.0, mps_server=True))
