"""Catalogue row for a device that is in no catalogue, from its own record: the device of `--gpu cpu-local`."""

from __future__ import annotations

from collections.abc import Sequence

from planner.errors import InputFileError
from planner.hardware.gpu import Gpu
from planner.measured.device import evidence_of, measured_rates
from planner.measured.rates import Activity, ActivityKind, MeasuredValue
from planner.records.home import CPU_LOCAL
from planner.records.measurement import Measurement

CPU_PCIE_BYTES_PER_S = 1e12
"""PCIe rate of a CPU. Its cores reach memory without PCIe, so the rate is too high to ever matter."""


def gpu_from_record(measurements: Sequence[Measurement]) -> Gpu:
    """Build a catalogue row for the device that a record was measured on.

    The peaks are the fastest products measured, so utilisation on this device is relative to them.

    Raises:
        InputFileError: no matrix product or no bandwidth was measured, or the size of the memory is unknown.
    """
    rates = measured_rates(measurements)
    best, copy = rates.best_matmul_flop_per_s, rates.copy_bytes_per_s
    last = measurements[-1]
    if not best or copy is None or last.device.memory_total_bytes is None:
        raise InputFileError(
            "the record lacks matrix products or bandwidth",
            hint="complete it with `mpplan probe --device cpu --resume`",
        )
    power = rates.power_w.get(Activity(kind=ActivityKind.IDLE))
    return Gpu(
        id=rates.gpu or CPU_LOCAL,
        name=rates.device_name,
        arch="CPU" if last.device.kind == "cpu" else "unknown",
        year=int((rates.date or "2026")[:4]),
        memory_bytes=last.device.memory_total_bytes,
        memory_bytes_per_s=copy.value,
        peak_flop_per_s=_peaks(best),
        l2_bytes=last.device.l2_bytes,
        sm_count=last.device.sm_count or last.device.threads,
        boost_hz=None,
        load_hz=None,
        power_scope="board",
        tdp_w=max((v.value for v in rates.power_w.values()), default=power.value if power else 0.0),
        nvlink_bytes_per_s=None,
        nvlink_domain_gpus=1,
        pcie_bytes_per_s=CPU_PCIE_BYTES_PER_S,
        gpus_per_node=1,
        nic_bytes_per_s=None,
        host_power_w=None,
        measured_matmul_flop_per_s={key: value.value for key, value in best.items() if key in ("bf16", "fp8")},
        measured_matmul_gpu=None,
        measured_memory_bytes_per_s=copy.value,
        confidence="B",
        evidence=evidence_of(rates),
        notes="peaks are the fastest products measured, not a datasheet's; power is unknown where it is 0",
    )


def _peaks(best: dict[str, MeasuredValue]) -> dict[str, float]:
    """Fastest product by precision; row-wise FP8 counts only if FP8 scaled per tensor was not measured."""
    peaks = {compute: value.value for compute, value in sorted(best.items(), reverse=True)}
    rowwise = peaks.pop("fp8-rowwise", None)
    return peaks if rowwise is None else {"fp8": rowwise} | peaks
