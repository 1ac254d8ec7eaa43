"""NVML of the fake GPU: power by what runs, an energy counter that ticks every 100 ms, a chip that warms up."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import pynvml

from tests.probes.fake_cuda.driver import FakeGpu
from tests.probes.sensors.test_nvml import ENERGY, POWER_AVERAGE, POWER_INSTANT, StandIn

IDLE_W = 120.0
PERIOD_S = 0.1
"""Between ticks of the counter, and between changes of the power field."""
WARM_C, WARMING_S = 32.0, 6.0
"""By how much work heats the chip, and how fast."""
CONTEXT_BYTES = 520 * 2**20
"""Of a process with a context, beside its tensors (made up)."""


class FakeNvml(StandIn):
    """`pynvml` as it reads the fake GPU."""

    _nvmlGetFunctionPointer = None  # noqa: N815 - told apart by it from another package of that name

    def __init__(self, gpu: FakeGpu) -> None:
        super().__init__()
        self._gpu = gpu
        self._energy_j, self._ticked_j, self._next_tick_s = 5000.0, 5000.0, gpu.clock.now_s
        self._power_w = self._field_w = IDLE_W
        self._average_w = IDLE_W
        self._heat_c = 0.0
        self.pids = []
        self.uuid = f"GPU-{gpu.board.uuid}"
        gpu.clock.on_advance(self._pass)

    def nvmlDeviceGetHandleByUUID(self, uuid: str) -> str:  # noqa: N802
        if uuid != self.uuid:  # NVML knows all boards; that of another process is none of this one's business
            raise pynvml.NVMLError(pynvml.NVML_ERROR_NOT_FOUND)
        return uuid

    def nvmlDeviceGetName(self, handle: str) -> str:  # noqa: N802
        return self._gpu.board.name

    def nvmlDeviceGetClockInfo(self, handle: str, clock_type: int) -> int:  # noqa: N802
        return round(1e-6 * self._gpu.board.sm_clock_hz) if clock_type == pynvml.NVML_CLOCK_SM else 3201

    def nvmlDeviceGetEnforcedPowerLimit(self, handle: str) -> int:  # noqa: N802
        return round(1e3 * self._gpu.board.power_limit_w)

    def nvmlDeviceGetCurrentClocksEventReasons(self, handle: str) -> int:  # noqa: N802
        return self._gpu.board.clock_event_mask

    def _pass(self, seconds: float, power_w: float) -> None:
        """Add up the energy of a stretch of time; work or rest is the same throughout."""
        self._power_w = IDLE_W if power_w < 0 else power_w
        fade = math.exp(-seconds)
        self._average_w = fade * self._average_w + (1.0 - fade) * self._power_w
        target_c = 0.0 if power_w < 0 else WARM_C
        self._heat_c = target_c + (self._heat_c - target_c) * math.exp(-seconds / WARMING_S)
        end_s = self._gpu.clock.now_s + seconds
        if end_s >= self._next_tick_s:
            last_tick_s = self._next_tick_s + PERIOD_S * math.floor((end_s - self._next_tick_s) / PERIOD_S)
            self._ticked_j = self._energy_j + self._power_w * max(last_tick_s - self._gpu.clock.now_s, 0.0)
            self._field_w = self._power_w
            self._next_tick_s = last_tick_s + PERIOD_S
        self._energy_j += self._power_w * seconds

    def nvmlInit(self) -> None:  # noqa: N802
        return

    def nvmlDeviceGetCount(self) -> int:  # noqa: N802
        return 1

    def nvmlSystemGetDriverVersion(self) -> str:  # noqa: N802
        return "580.00"

    def nvmlDeviceGetEccMode(self, handle: str) -> list[int]:  # noqa: N802
        return [1, 1]

    def nvmlDeviceGetMaxPcieLinkGeneration(self, handle: str) -> int:  # noqa: N802
        return 5

    def nvmlDeviceGetMaxPcieLinkWidth(self, handle: str) -> int:  # noqa: N802
        return 16

    def nvmlDeviceGetNvLinkState(self, handle: str, link: int) -> int:  # noqa: N802
        if link >= 18:  # links of an H200
            raise pynvml.NVMLError(pynvml.NVML_ERROR_INVALID_ARGUMENT)
        return pynvml.NVML_FEATURE_ENABLED

    def nvmlDeviceGetUtilizationRates(self, handle: str) -> Any:  # noqa: N802
        return SimpleNamespace(gpu=0, memory=0)

    def nvmlDeviceGetMemoryInfo(self, handle: str) -> Any:  # noqa: N802
        used = CONTEXT_BYTES + self._gpu.memory.reserved
        total = 150754820096
        return SimpleNamespace(total=total, used=used, free=total - used)

    def nvmlDeviceGetFieldValues(self, handle: str, fields: list[tuple[int, int]]) -> Any:  # noqa: N802
        self.fields[(ENERGY, 0)] = int(1e3 * self._ticked_j)
        self.fields[(POWER_INSTANT, 0)] = int(1e3 * self._field_w)
        self.fields[(POWER_AVERAGE, 0)] = int(1e3 * self._average_w)
        return super().nvmlDeviceGetFieldValues(handle, fields)

    def nvmlDeviceGetTotalEnergyConsumption(self, handle: str) -> int:  # noqa: N802
        return int(1e3 * self._ticked_j)

    def nvmlDeviceGetTemperature(self, handle: str, sensor: int) -> int:  # noqa: N802
        return round(35.0 + self._heat_c)
