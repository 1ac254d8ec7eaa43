"""One line of the fleet: whose time, whose watts, whose memory."""

from __future__ import annotations

import pytest

from planner.fleet.lines import device_of, failed_line, software_of
from planner.fleet.readings import reading_of
from planner.records.machine import DeviceIdentity, SoftwareVersions
from tests.planner.fleet.fleets import Gpu, by_id, joined
from tests.planner.recorded import a_measurement

THREE = (
    Gpu(power_w=600.0, memory_bytes=2.0e9),
    Gpu(power_w=500.0, memory_bytes=2.5e9, slower=1.1, clock_hz=1.5e9),
    Gpu(power_w=640.0, memory_bytes=2.1e9),
)


def test_the_time_is_the_slowest_members_with_its_interval_and_its_clock(tmp_path):
    line = by_id(joined(tmp_path, *THREE), "gemm/10")

    assert line.time.median_s == pytest.approx(0.011)
    assert (line.time.ci_low_s, line.time.ci_high_s) == (pytest.approx(0.010989), pytest.approx(0.011011))
    assert line.device_state.sm_clock_median_hz == 1.5e9
    assert line.reason == "slowest of 3: node02"


def test_power_and_energy_are_means_and_memory_is_the_largest(tmp_path):
    line = by_id(joined(tmp_path, *THREE), "power/bf16")

    assert line.power.mean_w == pytest.approx(580.0)  # (600 + 500 + 640) / 3
    assert line.energy.j_per_iteration == pytest.approx(5.9667, abs=1e-4)  # (6.0 + 5.5 + 6.4) / 3
    assert line.memory.allocated_peak_bytes == 2.5e9


def test_every_member_is_kept_in_the_line(tmp_path):
    ranks = by_id(joined(tmp_path, *THREE), "power/bf16").ranks

    assert ranks.names == ("node01", "node02", "node03")
    assert ranks.time_s == (0.01, pytest.approx(0.011), 0.01)
    assert ranks.power_w == (600.0, 500.0, 640.0)
    assert ranks.memory_bytes == (2.0e9, 2.5e9, 2.1e9)
    assert ranks.sm_clock_hz == (1.7e9, 1.5e9, 1.7e9)


def test_a_window_that_cannot_be_used_is_not_in_the_mean(tmp_path):
    broken = Gpu(power_w=100.0, slower=1.2, changes={"energy_quality": "inconsistent"})
    fleet = joined(tmp_path, Gpu(), Gpu(power_w=620.0), broken)
    (window,) = [point for point in fleet.measurements if point.probe_id == "gemm/3"]

    assert window.power.mean_w == pytest.approx(610.0)


def test_the_limit_is_the_median_one_so_that_a_capped_member_does_not_stand_for_all(tmp_path):
    line = by_id(joined(tmp_path, Gpu(), Gpu(), Gpu(power_limit_w=500.0, slower=1.2)), "gemm/1")

    assert line.device_state.power_limit_w == 700.0


def test_what_one_member_cannot_run_the_fleet_cannot():
    reasons = [reading_of(name, a_measurement(status="oom", reason="out of memory"), (name,)) for name in ("a", "b")]

    line = failed_line([*reasons, reading_of("c", a_measurement(status="error", reason="broken"), ("c",))])

    assert (line.status, line.reason) == ("oom", "in a, b: out of memory")


def test_the_device_of_a_fleet_is_the_kind_of_its_gpus():
    device = device_of([
        DeviceIdentity(kind="cuda", name="NVIDIA H200", uuid_hash="1", memory_total_bytes=150e9, cpu_model="X"),
        DeviceIdentity(kind="cuda", name="NVIDIA H200", uuid_hash="2", memory_total_bytes=149e9, cpu_model="Y"),
    ])  # fmt: skip

    assert device == DeviceIdentity(kind="cuda", name="NVIDIA H200", memory_total_bytes=149e9)


def test_versions_that_differ_are_both_named():
    first = SoftwareVersions(torch_version="2.9.0", driver_version="580", environment={"A": "1", "B": "2"})
    second = SoftwareVersions(torch_version="2.10.0", driver_version="580", environment={"A": "1"})

    assert software_of([first, second]) == SoftwareVersions(
        torch_version="2.9.0 and 2.10.0", driver_version="580", environment={"A": "1"}
    )
