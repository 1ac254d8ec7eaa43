"""A device from its own record: peaks are the fastest products measured."""

from __future__ import annotations

import pytest

from planner.errors import InputFileError
from planner.measured.own_device import gpu_from_record
from planner.records.measurement import Measurement
from tests.planner.recorded import SHAPES, a_measurement, gemm


def cpu_record() -> list[Measurement]:
    facts = {
        "device_kind": "cpu",
        "device_name": "AMD EPYC",
        "memory_total_bytes": 24e9,
        "threads": 2,
        "power_limit_w": None,
    }
    return [
        *(gemm(*shape, recipe=recipe, **facts) for shape in SHAPES[:4] for recipe in ("fp32", "bf16-autocast")),
        a_measurement(
            probe_id="bandwidth/copy",
            kind="bandwidth",
            role="copy",
            bytes_min=2.0**28,
            time_median_s=2.0**28 / 4e10,
            **facts,
        ),
    ]


def test_a_cpu_becomes_a_row_with_its_own_fastest_products_as_peaks() -> None:
    gpu = gpu_from_record(cpu_record())

    assert (gpu.id, gpu.name, gpu.arch, gpu.gpus_per_node) == ("cpu-local", "AMD EPYC", "CPU", 1)
    assert set(gpu.peak_flop_per_s) == {"fp32", "bf16"}
    assert gpu.memory_bytes_per_s == pytest.approx(4e10)
    assert gpu.memory_bytes == 24e9
    assert gpu.evidence.kind == "measured"
    assert not gpu.supports("fp8")


def test_a_record_without_bandwidth_makes_no_row() -> None:
    with pytest.raises(InputFileError, match="lacks matrix products or bandwidth"):
        gpu_from_record(cpu_record()[:-1])


def test_a_device_of_unmeasured_watts_has_none_and_stands_alone() -> None:
    gpu = gpu_from_record(cpu_record())

    assert gpu.tdp_w == 0.0  # which the plan names as a gap: unknown energy, not energy of a guess
    assert (gpu.nvlink_domain_gpus, gpu.nvlink_bytes_per_s) == (1, None)


def test_the_board_s_power_is_the_most_that_an_activity_drew() -> None:
    facts = {"device_kind": "cpu", "device_name": "AMD EPYC", "memory_total_bytes": 24e9, "power_limit_w": None}
    drawn = [
        a_measurement(probe_id=role, kind="power", role=role, power_mean_w=watts, energy_quality="ok", **facts)
        for role, watts in (("copy", 150.0), ("forward", 210.0))
    ]

    assert gpu_from_record([*cpu_record(), *drawn]).tdp_w == 210.0
