"""RAPL on a powercap tree as Linux lays it out."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from planner.errors import CannotMeasureError
from probes.sensors import RaplSensor

RANGE_UJ = 262_143_328_850
"""Range of a counter on a server processor."""


def zone(root: Path, name: str, label: str, energy_uj: int) -> Path:
    path = root / name
    path.mkdir(parents=True)
    (path / "name").write_text(f"{label}\n")
    (path / "energy_uj").write_text(f"{energy_uj}\n")
    (path / "max_energy_range_uj").write_text(f"{RANGE_UJ}\n")
    return path


def advance(path: Path, energy_uj: int) -> None:
    (path / "energy_uj").write_text(f"{energy_uj}\n")


def test_energy_is_the_sum_of_the_packages_and_leaves_their_parts_out(tmp_path: Path) -> None:
    first = zone(tmp_path, "intel-rapl:0", "package-0", 1_000_000)
    second = zone(tmp_path, "intel-rapl:1", "package-1", 7_000_000)
    core = zone(tmp_path, "intel-rapl:0:0", "core", 500_000)
    zone(tmp_path, "intel-rapl:2", "psys", 0)
    sensor = RaplSensor(tmp_path, now=lambda: 1.0)

    advance(first, 3_000_000)
    advance(second, 7_500_000)
    advance(core, 2_500_000)

    assert sensor.read().energy_j == pytest.approx(2.5)
    assert sensor.scope == "package"


def test_a_counter_that_starts_again_does_not_run_backwards(tmp_path: Path) -> None:
    package = zone(tmp_path, "intel-rapl:0", "package-0", RANGE_UJ - 1_000_000)
    sensor = RaplSensor(tmp_path)

    advance(package, 2_000_000)

    assert sensor.read().energy_j == pytest.approx(3.0)


def test_energy_only_power_and_heat_are_named_as_missing(tmp_path: Path) -> None:
    zone(tmp_path, "intel-rapl:0", "package-0", 0)
    sensor = RaplSensor(tmp_path)

    assert set(sensor.missing) == {"power", "temperature", "clocks"}
    assert sensor.read().power_instant_w is None
    assert sensor.state().temperature_c is None


def test_a_zone_without_a_name_is_no_package(tmp_path: Path) -> None:
    (zone(tmp_path, "intel-rapl:0", "package-0", 0) / "name").unlink()

    with pytest.raises(CannotMeasureError, match="shows no CPU energy counter"):
        RaplSensor(tmp_path)


def test_a_cpu_s_counter_knows_nothing_of_processes(tmp_path: Path) -> None:
    zone(tmp_path, "intel-rapl:0", "package-0", 0)

    assert RaplSensor(tmp_path).processes() is None


def test_a_machine_without_the_tree_says_so(tmp_path: Path) -> None:
    with pytest.raises(CannotMeasureError, match="shows no CPU energy counter"):
        RaplSensor(tmp_path / "none")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_counter_that_may_not_be_read_says_what_to_permit(tmp_path: Path) -> None:
    package = zone(tmp_path, "intel-rapl:0", "package-0", 0)
    (package / "energy_uj").chmod(0)

    with pytest.raises(CannotMeasureError, match="no permission") as caught:
        RaplSensor(tmp_path)

    assert "chmod a+r" in str(caught.value.hint)


def test_a_counter_that_holds_no_number_cannot_be_measured(tmp_path: Path) -> None:
    package = zone(tmp_path, "intel-rapl:0", "package-0", 0)
    (package / "energy_uj").write_text("broken")

    with pytest.raises(CannotMeasureError, match="cannot be read"):
        RaplSensor(tmp_path)
