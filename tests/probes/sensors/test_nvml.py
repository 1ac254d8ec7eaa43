"""NVML through a stand-in that can only do what the real binding does: its structures, units and errors."""

from __future__ import annotations

import ctypes
import os
import sys
from types import SimpleNamespace
from typing import Any

import pynvml
import pytest

from planner.errors import CannotMeasureError
from probes.sensors import NvmlSensor, open_sensor
from probes.sensors.nvml import NoDriverError, load_nvml

UUID = "GPU-11111111-2222-3333-4444-555555555555"
MIB = 2**20
ENERGY, POWER_AVERAGE, POWER_INSTANT, MEMORY_TEMPERATURE = 83, 185, 186, 82


def not_supported() -> Exception:
    return pynvml.NVMLError(pynvml.NVML_ERROR_NOT_SUPPORTED)


class StandIn:
    """`pynvml` as an H200 would answer through it; anything can be made to fail with a real NVML error."""

    NVMLError = pynvml.NVMLError
    NVML_CLOCK_SM = pynvml.NVML_CLOCK_SM
    NVML_CLOCK_MEM = pynvml.NVML_CLOCK_MEM
    NVML_TEMPERATURE_GPU = pynvml.NVML_TEMPERATURE_GPU
    NVML_FEATURE_ENABLED = pynvml.NVML_FEATURE_ENABLED
    NVML_NVLINK_MAX_LINKS = pynvml.NVML_NVLINK_MAX_LINKS
    NVML_ERROR_NO_PERMISSION = pynvml.NVML_ERROR_NO_PERMISSION
    NVML_ERROR_NOT_SUPPORTED = pynvml.NVML_ERROR_NOT_SUPPORTED
    NVML_GPU_VIRTUALIZATION_MODE_VGPU = pynvml.NVML_GPU_VIRTUALIZATION_MODE_VGPU

    def __init__(self, **failing: Exception) -> None:
        self.failing = failing
        self.fields: dict[tuple[int, int], int] = {
            (ENERGY, 0): 5_000_000,  # mJ
            (POWER_INSTANT, 0): 652_000,  # mW
            (POWER_AVERAGE, 0): 648_000,
            (MEMORY_TEMPERATURE, 0): 71,
        }
        self.name = "NVIDIA H200"
        self.mig = 0
        self.uuid = UUID
        self.pids = [1]
        self.mps_pids: list[int] = []
        self.memory_by_pid: dict[int, int | None] = {}
        self.names: dict[int, str] = {}
        self.capability = (9, 0)
        self.used_bytes = 600 * MIB
        self.virtualization = pynvml.NVML_GPU_VIRTUALIZATION_MODE_PASSTHROUGH

    def _or_fail(self, name: str, value: Any) -> Any:
        if name in self.failing:
            raise self.failing[name]
        return value

    def nvmlDeviceGetHandleByUUID(self, uuid: str) -> str:  # noqa: N802
        if uuid != self.uuid:
            raise pynvml.NVMLError(pynvml.NVML_ERROR_NOT_FOUND)
        return "handle"

    def nvmlDeviceIsMigDeviceHandle(self, handle: str) -> Any:  # noqa: N802
        return ctypes.c_uint(self.uuid.startswith("MIG-"))

    def nvmlDeviceGetMigMode(self, handle: str) -> list[int]:  # noqa: N802
        if self.uuid.startswith("MIG-"):  # a mode is of whole GPUs
            raise pynvml.NVMLError(pynvml.NVML_ERROR_INVALID_ARGUMENT)
        return self._or_fail("mig", [self.mig, self.mig])

    def nvmlDeviceGetName(self, handle: str) -> str:  # noqa: N802
        return self.name

    def nvmlDeviceGetFieldValues(self, handle: str, fields: list[tuple[int, int]]) -> Any:  # noqa: N802
        if "fields" in self.failing:
            raise self.failing["fields"]
        values = (pynvml.c_nvmlFieldValue_t * len(fields))()
        for entry, (field, scope) in zip(values, fields, strict=True):
            entry.fieldId, entry.scopeId = field, scope
            value = self.fields.get((field, scope))
            entry.nvmlReturn = pynvml.NVML_ERROR_NOT_SUPPORTED if value is None else pynvml.NVML_SUCCESS
            entry.valueType = pynvml.NVML_VALUE_TYPE_UNSIGNED_LONG_LONG
            entry.value.ullVal = value or 0
        return values

    def nvmlDeviceGetTotalEnergyConsumption(self, handle: str) -> int:  # noqa: N802
        return self._or_fail("counter", 5_000_000)

    def nvmlDeviceGetClockInfo(self, handle: str, clock_type: int) -> int:  # noqa: N802
        return self._or_fail("clocks", 1755 if clock_type == pynvml.NVML_CLOCK_SM else 3201)

    def nvmlDeviceGetEnforcedPowerLimit(self, handle: str) -> int:  # noqa: N802
        return self._or_fail("limit", 700_000)

    def nvmlDeviceGetComputeRunningProcesses_v3(self, handle: str) -> list[Any]:  # noqa: N802
        return self._or_fail("processes", self._entries(self.pids))

    def nvmlDeviceGetMPSComputeRunningProcesses_v3(self, handle: str) -> list[Any]:  # noqa: N802
        return self._or_fail("mps", self._entries(self.mps_pids))

    def _entries(self, pids: list[int]) -> list[Any]:
        return [SimpleNamespace(pid=pid, usedGpuMemory=self.memory_by_pid.get(pid)) for pid in pids]

    def nvmlSystemGetProcessName(self, pid: int) -> str:  # noqa: N802
        if pid not in self.names:  # as for a process of another container
            raise pynvml.NVMLError(pynvml.NVML_ERROR_NOT_FOUND)
        return self.names[pid]

    def nvmlDeviceGetCudaComputeCapability(self, handle: str) -> tuple[int, int]:  # noqa: N802
        return self.capability

    def nvmlDeviceGetMemoryInfo(self, handle: str) -> Any:  # noqa: N802
        return self._or_fail("memory", SimpleNamespace(used=self.used_bytes))

    def nvmlDeviceGetTemperature(self, handle: str, sensor: int) -> int:  # noqa: N802
        return self._or_fail("temperature", 58)

    def nvmlDeviceGetCurrentClocksEventReasons(self, handle: str) -> int:  # noqa: N802
        return self._or_fail("reasons", 0x4)

    def nvmlDeviceGetVirtualizationMode(self, handle: str) -> int:  # noqa: N802
        return self.virtualization

    def nvmlShutdown(self) -> None:  # noqa: N802
        return


def sensor(nvml: StandIn) -> NvmlSensor:
    return NvmlSensor(UUID, nvml=nvml, now=lambda: 12.5)


def without(nvml: StandIn, *fields: int) -> StandIn:
    nvml.fields = {key: value for key, value in nvml.fields.items() if key[0] not in fields}
    return nvml


def test_millijoules_and_milliwatts_become_joules_and_watts() -> None:
    reading = sensor(StandIn()).read()

    assert reading.time_s == 12.5
    assert (reading.energy_j, reading.power_instant_w, reading.power_average_w) == (5000.0, 652.0, 648.0)


def test_the_state_is_in_degrees_hertz_and_watts() -> None:
    state = sensor(StandIn()).state()

    assert (state.temperature_c, state.memory_temperature_c) == (58, 71)
    assert (state.sm_clock_hz, state.memory_clock_hz) == (1755e6, 3201e6)
    assert (state.power_limit_w, state.clock_event_mask, state.processes) == (700.0, 4, 1)


def test_our_own_process_is_not_counted_among_those_on_the_device() -> None:
    nvml = StandIn()
    nvml.pids = [os.getpid(), 4711]

    assert sensor(nvml).processes() == 1


def test_the_memory_of_our_process_is_that_of_its_own_entry() -> None:
    nvml = StandIn()
    nvml.pids = [4711, os.getpid()]
    nvml.memory_by_pid = {4711: 9000 * MIB, os.getpid(): 1536 * MIB}

    assert sensor(nvml).state().process_bytes == 1536 * MIB


def test_processes_that_share_the_device_through_mps_are_counted_once() -> None:
    nvml = StandIn()
    nvml.pids, nvml.mps_pids = [4711], [os.getpid(), 4711, 4712]
    nvml.memory_by_pid = {os.getpid(): 1536 * MIB}

    assert sensor(nvml).processes() == 2
    assert sensor(nvml).state().process_bytes == 1536 * MIB


def test_a_driver_that_lists_no_mps_processes_still_lists_the_others() -> None:
    assert sensor(StandIn(mps=not_supported())).processes() == 1


@pytest.mark.parametrize(
    "name", ["/usr/bin/nvidia-cuda-mps-server", "nvidia-cuda-mps-server", "nvidia-cuda-mps-server -f"]
)
def test_an_idle_server_of_mps_is_no_other_process_on_the_device(name: str) -> None:
    nvml = StandIn()
    nvml.pids, nvml.names = [4711], {4711: name}

    assert sensor(nvml).mps_server()
    assert sensor(nvml).processes() == sensor(nvml).state().processes == 0


def test_the_clients_of_a_server_of_mps_are_other_processes_and_this_process_is_not() -> None:
    nvml = StandIn()
    nvml.pids, nvml.mps_pids = [4711], [4712, os.getpid()]
    nvml.names = {4711: "/usr/bin/nvidia-cuda-mps-server", 4712: "/usr/bin/python3"}

    assert sensor(nvml).processes() == 1


@pytest.mark.parametrize(
    ("name", "capability", "failing"),
    [
        ("/usr/bin/nvidia-cuda-mps-server", (6, 0), {}),  # it does the work of its clients, which are not listed
        ("/usr/bin/nvidia-cuda-mps-server", (9, 0), {"mps": not_supported()}),  # clients are not listed
        ("/opt/me/nvidia-cuda-mps-server.py", (9, 0), {}),
        ("/usr/bin/python3", (9, 0), {}),
    ],
)
def test_a_process_that_may_work_on_the_device_is_counted(
    name: str, capability: tuple[int, int], failing: dict[str, Exception]
) -> None:
    nvml = StandIn(**failing)
    nvml.pids, nvml.names, nvml.capability = [4711], {4711: name}, capability

    assert sensor(nvml).processes() == 1
    assert not sensor(nvml).mps_server()


@pytest.mark.parametrize(("listed", "expected"), [((), None), ((os.getpid(), 4711), 1)])
def test_an_old_driver_answers_through_the_real_binding(
    monkeypatch: pytest.MonkeyPatch, listed: tuple[int, ...], expected: int | None
) -> None:
    def handle(_uuid: Any, device: Any) -> int:
        device._obj.value = 1
        return pynvml.NVML_SUCCESS

    def processes(_device: Any, count: Any, entries: Any) -> int:
        count._obj.value = len(listed)
        if entries is None:
            return pynvml.NVML_ERROR_INSUFFICIENT_SIZE
        for entry, pid in zip(entries, listed, strict=False):
            entry.pid, entry.usedGpuMemory = pid, 512 * MIB
        return pynvml.NVML_SUCCESS

    library = SimpleNamespace(nvmlDeviceGetHandleByUUID=handle)
    if listed:  # drivers from R450 to R470; still older ones have no function with a version
        library.nvmlDeviceGetComputeRunningProcesses_v2 = processes
    monkeypatch.setattr(pynvml, "nvmlLib", library)
    monkeypatch.setattr(pynvml, "_nvmlGetFunctionPointer_cache", {})

    opened = NvmlSensor(UUID, nvml=pynvml, now=lambda: 12.5)

    assert opened.processes() == expected
    assert opened.state().process_bytes == (512 * MIB if listed else None)
    assert set(opened.missing) == {"energy", "power"}
    assert opened.read().energy_j is None


@pytest.mark.parametrize(("pids", "memory"), [([], {}), ([77], {77: None}), ([os.getpid()], {os.getpid(): None})])
def test_where_our_entry_is_hidden_our_memory_is_what_the_device_s_use_has_grown_by(
    pids: list[int], memory: dict[int, int | None]
) -> None:
    nvml = StandIn()
    nvml.pids, nvml.memory_by_pid = pids, memory
    opened = sensor(nvml)
    nvml.used_bytes += 530 * MIB  # a context, and tensors

    assert opened.state().process_bytes == 530 * MIB


@pytest.mark.parametrize(
    ("percents", "ratio", "waits"),
    [([3], 0.03, 0), ([62, 60], 0.6, 1), ([100, 0], 0.0, 1), ([62, None], 0.62, 1), ([None], None, 0)],
)
def test_a_gpu_that_works_before_we_use_it_is_read_again_since_waking_it_up_may_look_like_work(
    monkeypatch: pytest.MonkeyPatch, percents: list[int | None], ratio: float | None, waits: int
) -> None:
    def rates(_handle: str) -> Any:
        percent = percents.pop(0)
        if percent is None:
            raise not_supported()
        return SimpleNamespace(gpu=percent)

    waited: list[float] = []
    monkeypatch.setattr("probes.sensors.nvml.time", SimpleNamespace(sleep=waited.append))
    nvml = StandIn()
    nvml.nvmlDeviceGetUtilizationRates = rates  # type: ignore[attr-defined]

    assert sensor(nvml).busy_ratio() == ratio
    assert len(waited) == waits
    assert not percents


def test_memory_that_the_driver_does_not_tell_is_unknown() -> None:
    assert sensor(StandIn(memory=not_supported())).state().process_bytes is None


def test_the_device_is_found_by_uuid_with_or_without_its_prefix() -> None:
    assert NvmlSensor(UUID.removeprefix("GPU-"), nvml=StandIn()).scope == "board"


def test_a_device_that_nvml_does_not_see_cannot_be_measured() -> None:
    with pytest.raises(CannotMeasureError, match="NVML does not see the GPU"):
        NvmlSensor("GPU-other", nvml=StandIn())


def test_a_field_that_fails_falls_back_to_the_counters_own_call() -> None:
    nvml = without(StandIn(), ENERGY)

    assert sensor(nvml).read().energy_j == 5000.0
    assert "energy" not in sensor(nvml).missing


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (pynvml.NVML_ERROR_NOT_SUPPORTED, "this GPU has no energy counter (before Volta, or hidden by the hypervisor)"),
        (pynvml.NVML_ERROR_NO_PERMISSION, "no permission to read the energy counter"),
        (pynvml.NVML_ERROR_GPU_IS_LOST, "the energy counter cannot be read: GPU is lost"),
    ],
)
def test_a_missing_counter_is_named_with_its_reason_and_power_is_still_read(error: int, reason: str) -> None:
    opened = sensor(without(StandIn(counter=pynvml.NVMLError(error)), ENERGY))

    assert opened.missing["energy"] == reason
    assert opened.read().energy_j is None
    assert opened.read().power_instant_w == 652.0


def test_a_virtual_gpu_without_a_counter_is_called_one() -> None:
    nvml = without(StandIn(counter=not_supported()), ENERGY)
    nvml.virtualization = pynvml.NVML_GPU_VIRTUALIZATION_MODE_VGPU

    assert sensor(nvml).missing["energy"] == "the device is a virtual GPU, which has no energy counter"


def test_a_mig_slice_has_neither_energy_nor_power_and_says_why() -> None:
    nvml = StandIn()
    nvml.mig = 1

    opened = sensor(nvml)

    assert opened.missing["energy"] == "the device is a MIG slice; the board does not meter slices"
    assert opened.read().energy_j is None
    assert opened.read().power_instant_w is None


def test_a_slice_is_found_by_the_uuid_that_cuda_tells_without_a_prefix() -> None:
    nvml = StandIn()
    nvml.uuid = "MIG-66666666-7777-8888-9999-000000000000"

    opened = NvmlSensor(nvml.uuid.removeprefix("MIG-"), nvml=nvml)

    assert opened.missing["power"] == "the device is a MIG slice; the board does not meter slices"
    assert opened.processes() == 1


def test_power_of_the_module_is_read_and_said_where_the_gpu_scope_tells_nothing() -> None:
    nvml = without(StandIn(), POWER_INSTANT, POWER_AVERAGE)
    nvml.fields |= {(POWER_INSTANT, 1): 900_000, (POWER_AVERAGE, 1): 890_000}

    opened = sensor(nvml)

    assert opened.scope == "module"
    assert opened.read().power_instant_w == 900.0


def test_a_grace_hopper_is_metered_as_a_module_since_its_counter_is() -> None:
    nvml = StandIn()
    nvml.name = "NVIDIA GH200 480GB"
    nvml.fields[(POWER_INSTANT, 1)] = 900_000

    assert sensor(nvml).scope == "module"


def test_a_driver_without_the_power_fields_is_named() -> None:
    opened = sensor(without(StandIn(), POWER_INSTANT, POWER_AVERAGE))

    assert opened.missing["power"] == "this driver does not report the instantaneous power"
    assert opened.read().power_instant_w is None


def test_whatever_fails_while_reading_the_state_is_unknown_and_not_zero() -> None:
    failing = {name: not_supported() for name in ("clocks", "limit", "processes", "temperature", "reasons")}

    state = sensor(StandIn(**failing)).state()

    assert (state.temperature_c, state.sm_clock_hz, state.power_limit_w) == (None, None, None)
    assert (state.clock_event_mask, state.processes) == (None, None)


def has_driver() -> bool:
    try:
        load_nvml()
    except CannotMeasureError:
        return False
    return True


@pytest.mark.skipif(has_driver(), reason="this machine has a driver")
def test_without_a_driver_the_reason_is_said_and_nothing_is_raised() -> None:
    opened = open_sensor("cuda", UUID)

    assert opened.sensor is None
    assert "NVML does not start" in str(opened.reason)
    assert opened.hint is not None


def test_the_deprecated_package_of_the_same_name_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(pynvml, "_nvmlGetFunctionPointer")

    with pytest.raises(CannotMeasureError, match="not NVIDIA's"):
        load_nvml()


def test_without_the_binding_its_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", None)  # what an import of a missing package meets

    with pytest.raises(CannotMeasureError, match="binding is missing") as caught:
        load_nvml()

    assert caught.value.hint == "pip install nvidia-ml-py"


@pytest.mark.parametrize(
    ("code", "helps"),
    [
        (pynvml.NVML_ERROR_LIB_RM_VERSION_MISMATCH, "restart the machine"),
        (pynvml.NVML_ERROR_DRIVER_NOT_LOADED, "kernel module `nvidia`"),
        (pynvml.NVML_ERROR_OPERATING_SYSTEM, "install the NVIDIA driver"),
        (pynvml.NVML_ERROR_LIBRARY_NOT_FOUND, "pass its library into the container"),
    ],
)
def test_a_driver_that_does_not_start_is_told_from_one_that_is_missing(
    monkeypatch: pytest.MonkeyPatch, code: int, helps: str
) -> None:
    def init() -> None:
        raise pynvml.NVMLError(code)

    monkeypatch.setattr(pynvml, "nvmlInit", init)

    with pytest.raises(CannotMeasureError, match="NVML does not start") as caught:
        load_nvml()

    assert isinstance(caught.value, NoDriverError) == (code == pynvml.NVML_ERROR_LIBRARY_NOT_FOUND)
    assert helps in str(caught.value.hint)


def test_a_binding_that_starts_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[bool] = []
    monkeypatch.setattr(pynvml, "nvmlInit", lambda: started.append(True))

    assert load_nvml() is pynvml
    assert started == [True]


def test_a_handle_of_a_slice_is_a_slice_whatever_the_mode_says() -> None:
    nvml = StandIn()
    nvml.nvmlDeviceIsMigDeviceHandle = lambda handle: 1

    assert set(sensor(nvml).missing) == {"energy", "power"}


def test_a_driver_without_field_values_is_read_by_its_other_calls() -> None:
    opened = sensor(StandIn(fields=not_supported()))

    assert opened.read().energy_j == 5000.0
    assert opened.read().power_instant_w is None
    assert opened.missing == {"power": "this driver does not report the instantaneous power"}
    assert opened.state().memory_temperature_c is None


def test_a_counter_that_answers_only_when_asked_why_it_did_not_is_said_to_read_nothing() -> None:
    class Hesitant(StandIn):
        asked = 0

        def nvmlDeviceGetTotalEnergyConsumption(self, handle: str) -> int:  # noqa: N802
            self.asked += 1
            if self.asked == 1:
                raise pynvml.NVMLError(pynvml.NVML_ERROR_TIMEOUT)
            return 5_000_000

    opened = sensor(without(Hesitant(), ENERGY))

    assert opened.missing["energy"] == "the energy counter reads nothing"
    assert opened.read().energy_j is None


def test_a_gpu_whose_uuid_torch_does_not_tell_has_no_sensor() -> None:
    assert open_sensor("cuda", None).reason == "this version of torch does not report the GPU's UUID"
