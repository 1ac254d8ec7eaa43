"""NVIDIA GPUs through NVML (`nvidia-ml-py`): the energy counter, with the instantaneous power field beside it.

`nvmlDeviceGetPowerUsage` is a one-second average on most GPUs since Ampere, so power is read from the fields 186
(instantaneous) and 185 (average). The counter (field 83) is in millijoules since the driver was loaded. On Grace
Hopper, counter and fields cover the whole module, CPU included. A MIG slice has neither. Nothing here writes to the
device.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from planner.errors import CannotMeasureError
from planner.units import MEGA, MILLI
from probes.sensors.interface import Reading, State

ENERGY_FIELD = 83
POWER_AVERAGE_FIELD = 185
POWER_INSTANT_FIELD = 186
MEMORY_TEMPERATURE_FIELD = 82
QUIET_RATIO = 0.05
"""Largest share of busy time of a GPU that nothing uses."""
BUSY_AGAIN_S = 1.5
"""Time after which a busy GPU is read again: longer than NVML's sampling period, which is at most a second."""
_SCOPE_GPU, _SCOPE_MODULE = 0, 1
_PREFIXES = ("GPU-", "MIG-")
_VALUE_MEMBERS = ("dVal", "uiVal", "ulVal", "ullVal", "sllVal", "siVal", "usVal")
_COMPUTE_PROCESSES = ("nvmlDeviceGetComputeRunningProcesses_v3", "nvmlDeviceGetComputeRunningProcesses_v2")
_MPS_PROCESSES = ("nvmlDeviceGetMPSComputeRunningProcesses_v3", "nvmlDeviceGetMPSComputeRunningProcesses_v2")
"""Versions of a function, newest first; drivers before R510 have only the second. The binding's names without a version
raise an error of their own there, which is no `NVMLError`."""
_MPS_SERVER = re.compile(r"(?:^|/)nvidia-cuda-mps-server(?:\s|$)")
"""Name of the server process of CUDA's Multi-Process Service, which keeps its context after its last client ends."""
_LISTED_CLIENTS = 7
"""Major compute capability (Volta) from which clients of MPS submit work themselves and are listed; on older GPUs, the
server works for them (NVIDIA, Multi-Process Service, Introduction, read 2026-11-28)."""

_NOT_STARTED = {
    "NVML_ERROR_LIB_RM_VERSION_MISMATCH": "restart the machine: its driver was updated while the old one was loaded",
    "NVML_ERROR_DRIVER_NOT_LOADED": "load the kernel module `nvidia`, or install the driver again for this kernel",
}
"""Remedies by the name of the error with which NVML does not start."""
_INSTALL = "install the NVIDIA driver, or pass its library into the container"
"""Remedy for all other errors."""


class NoDriverError(CannotMeasureError):
    """The machine, or the container, has no NVIDIA driver, and so no GPU that could be measured."""


def load_nvml() -> Any:
    """Load and initialise the Python binding.

    Raises:
        NoDriverError: the driver's library is missing.
        CannotMeasureError: the binding is missing, the deprecated package of the same name is installed, or the driver
            does not start.
    """
    try:
        import pynvml
    except ImportError as error:
        raise CannotMeasureError("NVML's Python binding is missing", hint="pip install nvidia-ml-py") from error
    if not hasattr(pynvml, "_nvmlGetFunctionPointer"):
        raise CannotMeasureError(
            "the installed `pynvml` is not NVIDIA's",
            hint="pip uninstall pynvml && pip install --force-reinstall nvidia-ml-py",
        )
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError as error:
        code = getattr(error, "value", None)
        kind = NoDriverError if code == pynvml.NVML_ERROR_LIBRARY_NOT_FOUND else CannotMeasureError
        help_ = next((text for name, text in _NOT_STARTED.items() if getattr(pynvml, name) == code), _INSTALL)
        raise kind(f"NVML does not start: {error}", hint=help_) from error
    return pynvml


def handle_by_uuid(nvml: Any, uuid: str) -> Any:
    """Return the device with this UUID. Indices do not help, because NVML and CUDA count in different orders.

    CUDA reports the UUID without the prefix by which NVML distinguishes whole GPUs from MIG slices.

    Raises:
        CannotMeasureError: NVML does not see the device.
    """
    names = [uuid] if uuid.startswith(_PREFIXES) else [f"{prefix}{uuid}" for prefix in _PREFIXES]
    for form in (form for name in names for form in (name, name.encode())):
        try:
            return nvml.nvmlDeviceGetHandleByUUID(form)
        except (nvml.NVMLError, TypeError):
            continue
    raise CannotMeasureError(
        "NVML does not see the GPU that CUDA uses", hint="pass all of the GPU's devices into the container"
    )


def slice_of(nvml: Any, handle: Any) -> bool | None:
    """Return whether work on a device runs on a MIG slice: the device is one, or is split into them; None: unknown."""
    if asked(nvml, "nvmlDeviceIsMigDeviceHandle", handle):
        return True
    mode = asked(nvml, "nvmlDeviceGetMigMode", handle)
    return None if mode is None else bool(mode[0] == 1)


def links_up(nvml: Any, handle: Any) -> int | None:
    """Return how many of a GPU's NVLink links are up; None if it has none, or does not report them."""
    links = range(getattr(nvml, "NVML_NVLINK_MAX_LINKS", 0))
    states = [state for link in links if (state := asked(nvml, "nvmlDeviceGetNvLinkState", handle, link)) is not None]
    return sum(state == nvml.NVML_FEATURE_ENABLED for state in states) if states else None


def asked(nvml: Any, name: str, *arguments: Any) -> Any:
    """Return the answer of one of NVML's functions, or None if binding, driver or device does not provide it."""
    try:
        return getattr(nvml, name)(*arguments)
    except (nvml.NVMLError, AttributeError):
        return None


class NvmlSensor:
    """One GPU's energy, power, temperatures, clocks and memory."""

    name = "nvml"

    def __init__(self, uuid: str, nvml: Any = None, now: Callable[[], float] = time.monotonic) -> None:
        self._nvml = load_nvml() if nvml is None else nvml
        self._now = now
        self._handle = handle_by_uuid(self._nvml, uuid)
        self.scope = "board"
        self._power_scope = _SCOPE_GPU
        missing: dict[str, str] = {}
        if slice_of(self._nvml, self._handle):
            missing["energy"] = missing["power"] = "the device is a MIG slice; the board does not meter slices"
        else:
            self._look_for_power(missing)
        self._missing = missing
        self._used_before_bytes = self._used_bytes()

    @property
    def missing(self) -> Mapping[str, str]:
        """See `Sensor.missing`."""
        return self._missing

    def read(self) -> Reading:
        """See `Sensor.read`."""
        if "power" in self._missing and "energy" in self._missing:
            return Reading(time_s=self._now(), energy_j=None, power_instant_w=None, power_average_w=None)
        fields = [(ENERGY_FIELD, 0), (POWER_INSTANT_FIELD, self._power_scope), (POWER_AVERAGE_FIELD, self._power_scope)]
        values = self._fields(fields)
        energy = values[0] if values[0] is not None else self._counter()
        return Reading(
            time_s=self._now(),
            energy_j=None if energy is None or "energy" in self._missing else energy * MILLI,
            power_instant_w=None if not values[1] else values[1] * MILLI,
            power_average_w=None if not values[2] else values[2] * MILLI,
        )

    def state(self) -> State:
        """See `Sensor.state`."""
        nvml, handle = self._nvml, self._handle
        sm = self._ask(nvml.nvmlDeviceGetClockInfo, handle, nvml.NVML_CLOCK_SM)
        memory = self._ask(nvml.nvmlDeviceGetClockInfo, handle, nvml.NVML_CLOCK_MEM)
        limit = self._ask(nvml.nvmlDeviceGetEnforcedPowerLimit, handle)
        running = self._running()
        return State(
            time_s=self._now(),
            temperature_c=self._ask(nvml.nvmlDeviceGetTemperature, handle, nvml.NVML_TEMPERATURE_GPU),
            memory_temperature_c=self._fields([(MEMORY_TEMPERATURE_FIELD, 0)])[0] or None,
            sm_clock_hz=None if sm is None else sm * MEGA,
            memory_clock_hz=None if memory is None else memory * MEGA,
            clock_event_mask=self._event_mask(),
            power_limit_w=None if limit is None else limit * MILLI,
            processes=_others(running),
            process_bytes=self._process_bytes(running),
        )

    def processes(self) -> int | None:
        """See `Sensor.processes`."""
        return _others(self._running())

    def mps_server(self) -> bool:
        """Return whether a server of MPS that does no work itself is on the device; `processes` leaves it out."""
        listed = self._listed(_COMPUTE_PROCESSES) or ()
        return any(self._is_mps_server(process.pid) for process in listed)

    def busy_ratio(self) -> float | None:
        """Return the share of the last moments in which the device ran a kernel or drew; None if it does not say.

        Some drivers report a busy device right after it was woken up, so a high share is read again a little later.
        """
        first = self._busy_ratio()
        if first is None or first <= QUIET_RATIO:
            return first
        time.sleep(BUSY_AGAIN_S)
        again = self._busy_ratio()
        return first if again is None else min(first, again)

    def close(self) -> None:
        """See `Sensor.close`."""
        self._ask(self._nvml.nvmlShutdown)

    def _busy_ratio(self) -> float | None:
        rates = asked(self._nvml, "nvmlDeviceGetUtilizationRates", self._handle)
        return None if rates is None else float(rates.gpu) / 100.0

    def _look_for_power(self, missing: dict[str, str]) -> None:
        """Determine what the device reports and for which scope; name what it does not report."""
        if self._fields([(ENERGY_FIELD, 0)])[0] is None and self._counter() is None:
            missing["energy"] = self._why_no_energy()
        if not self._fields([(POWER_INSTANT_FIELD, _SCOPE_GPU)])[0]:
            if self._fields([(POWER_INSTANT_FIELD, _SCOPE_MODULE)])[0]:
                self._power_scope, self.scope = _SCOPE_MODULE, "module"
            else:
                missing["power"] = "this driver does not report the instantaneous power"
        elif self._fields([(POWER_INSTANT_FIELD, _SCOPE_MODULE)])[0] and "GH200" in self._device_name():
            self._power_scope, self.scope = _SCOPE_MODULE, "module"  # the counter there covers the module

    def _why_no_energy(self) -> str:
        nvml = self._nvml
        try:
            nvml.nvmlDeviceGetTotalEnergyConsumption(self._handle)
        except nvml.NVMLError as error:
            code = getattr(error, "value", None)
            if code == nvml.NVML_ERROR_NO_PERMISSION:
                return "no permission to read the energy counter"
            mode = self._ask(nvml.nvmlDeviceGetVirtualizationMode, self._handle)
            if mode == nvml.NVML_GPU_VIRTUALIZATION_MODE_VGPU:
                return "the device is a virtual GPU, which has no energy counter"
            if code == nvml.NVML_ERROR_NOT_SUPPORTED:
                return "this GPU has no energy counter (before Volta, or hidden by the hypervisor)"
            return f"the energy counter cannot be read: {error}"
        return "the energy counter reads nothing"

    def _running(self) -> Sequence[Any] | None:
        """Return the processes that may work on the device: all with a context, but for a server of MPS."""
        compute = self._listed(_COMPUTE_PROCESSES)
        if compute is None:
            return None
        pids = {process.pid for process in compute}
        clients = [process for process in self._listed(_MPS_PROCESSES) or () if process.pid not in pids]
        return [process for process in (*compute, *clients) if not self._is_mps_server(process.pid)]

    def _is_mps_server(self, pid: int) -> bool:
        """Return whether a process is a server of MPS whose clients are listed too; False if its name is unknown."""
        if pid == os.getpid():
            return False
        name = asked(self._nvml, "nvmlSystemGetProcessName", pid)
        if name is None or not _MPS_SERVER.search(name.decode() if isinstance(name, bytes) else name):
            return False
        capability = asked(self._nvml, "nvmlDeviceGetCudaComputeCapability", self._handle)
        return capability is not None and capability[0] >= _LISTED_CLIENTS and self._listed(_MPS_PROCESSES) is not None

    def _listed(self, names: Sequence[str]) -> Sequence[Any] | None:
        """Return the processes that the newest available function of these names lists; None if none is available."""
        answers = (asked(self._nvml, name, self._handle) for name in names)
        return next((processes for processes in answers if processes is not None), None)

    def _process_bytes(self, running: Sequence[Any] | None) -> float | None:
        """See `State.process_bytes`; an entry without memory is hidden by the system (a container, Windows)."""
        own_bytes = [process.usedGpuMemory for process in running or () if process.pid == os.getpid()]
        if own_bytes and own_bytes[0] is not None:
            return float(own_bytes[0])
        used = self._used_bytes()
        return None if used is None or self._used_before_bytes is None else max(used - self._used_before_bytes, 0.0)

    def _used_bytes(self) -> float | None:
        """Return the device memory in use by all processes, including the driver."""
        memory = self._ask(self._nvml.nvmlDeviceGetMemoryInfo, self._handle)
        return None if memory is None else float(memory.used)

    def _counter(self) -> float | None:
        value = self._ask(self._nvml.nvmlDeviceGetTotalEnergyConsumption, self._handle)
        return None if value is None else float(value)

    def _device_name(self) -> str:
        name = self._ask(self._nvml.nvmlDeviceGetName, self._handle) or ""
        return name.decode() if isinstance(name, bytes) else str(name)

    def _event_mask(self) -> int | None:
        for function in ("nvmlDeviceGetCurrentClocksEventReasons", "nvmlDeviceGetCurrentClocksThrottleReasons"):
            mask = self._ask(getattr(self._nvml, function, None), self._handle)
            if mask is not None:
                return int(mask)
        return None

    def _fields(self, fields: list[tuple[int, int]]) -> list[float | None]:
        values = self._ask(self._nvml.nvmlDeviceGetFieldValues, self._handle, fields)
        if values is None:
            return [None] * len(fields)
        return [
            None if value.nvmlReturn != 0 else float(getattr(value.value, _VALUE_MEMBERS[value.valueType]))
            for value in values
        ]

    def _ask(self, function: Callable[..., Any] | None, *arguments: Any) -> Any:
        """Call a function of NVML; return None if the device or driver does not provide it."""
        if function is None:
            return None
        try:
            return function(*arguments)
        except self._nvml.NVMLError:
            return None


def _others(running: Sequence[Any] | None) -> int | None:
    """Return how many of the processes on a device are not this one."""
    return None if running is None else sum(process.pid != os.getpid() for process in running)
